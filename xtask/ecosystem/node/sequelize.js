"use strict";
// Sequelize: sync, associations, queries and transactions.

const { assert, packages, run, url } = require("./cases.js");
const { DataTypes, Op, Sequelize, UniqueConstraintError } = packages("sequelize");
const db = new Sequelize(url, { logging: false });

const Owner = db.define("Owner", {
  name: { type: DataTypes.STRING(60), allowNull: false, unique: true },
  born: DataTypes.DATEONLY,
  score: { type: DataTypes.DECIMAL(10, 2), defaultValue: 0 },
  notes: DataTypes.JSONB,
});
const Pet = db.define("Pet", { id: { type: DataTypes.UUID, defaultValue: DataTypes.UUIDV4, primaryKey: true },
  name: DataTypes.TEXT, weight: DataTypes.DOUBLE });
const Tag = db.define("Tag", { label: DataTypes.STRING });
Owner.hasMany(Pet);
Pet.belongsTo(Owner);
Pet.belongsToMany(Tag, { through: "PetTags" });
Tag.belongsToMany(Pet, { through: "PetTags" });

run(
  {
    async authenticate() {
      await db.authenticate();
    },
    async sync() {
      await db.sync();
    },
    async sync_again() {
      await db.sync();
    },
    async create() {
      const owner = await Owner.create({ name: "Ada", born: "1815-12-10", notes: { a: [1, 2] } });
      assert.strictEqual(owner.id, 1);
      assert(owner.createdAt instanceof Date);
    },
    async find() {
      const owner = await Owner.findOne({ where: { name: { [Op.like]: "A%" } } });
      assert.strictEqual(owner.born, "1815-12-10");
      assert.deepStrictEqual(owner.notes, { a: [1, 2] });
      assert.strictEqual(owner.score, "0.00");
    },
    async associations() {
      const owner = await Owner.findByPk(1);
      await owner.createPet({ name: "Rex", weight: 12.5 });
      const found = await Owner.findByPk(1, { include: Pet });
      assert.deepStrictEqual(found.Pets.map((pet) => pet.name), ["Rex"]);
    },
    async many_to_many() {
      const [pet, tag] = [await Pet.findOne(), await Tag.create({ label: "old" })];
      await pet.addTag(tag);
      const found = await Pet.findOne({ include: Tag });
      assert.deepStrictEqual(found.Tags.map((one) => one.label), ["old"]);
    },
    async bulk_create() {
      await Owner.bulkCreate([..."bcd"].map((name) => ({ name, score: 2 })));
      assert.strictEqual(await Owner.count(), 4);
    },
    async find_or_create() {
      const [owner, created] = await Owner.findOrCreate({ where: { name: "b" } });
      assert(!created && owner.name === "b");
    },
    async find_or_create_new() {
      const [owner, created] = await Owner.findOrCreate({ where: { name: "e" } });
      assert(created && owner.name === "e");
    },
    async upsert() {
      await Owner.upsert({ name: "b", score: 7 });
      assert.strictEqual((await Owner.findOne({ where: { name: "b" } })).score, "7.00");
    },
    async update_and_increment() {
      const [count] = await Owner.update({ score: 3 }, { where: { name: "c" } });
      assert.strictEqual(count, 1);
      await (await Owner.findOne({ where: { name: "c" } })).increment("score", { by: 4 });
      assert.strictEqual((await Owner.findOne({ where: { name: "c" } })).score, "7.00");
    },
    async aggregate() {
      assert.strictEqual(Number(await Owner.max("score")), 7);
      const rows = await Owner.findAll({
        attributes: ["score", [db.fn("COUNT", db.col("id")), "owners"]], group: "score", order: ["score"], raw: true,
      });
      assert.deepStrictEqual(rows.at(-1), { score: "7.00", owners: "2" });
    },
    async find_and_count_all() {
      const { count, rows } = await Owner.findAndCountAll({
        limit: 2, offset: 1, order: [["name", "DESC"]], where: { name: { [Op.ne]: "e" } },
      });
      assert.strictEqual(count, 4);
      assert.deepStrictEqual(rows.map((row) => row.name), ["c", "b"]);
    },
    async managed_transaction() {
      await db.transaction(async (transaction) => {
        const owner = await Owner.create({ name: "t" }, { transaction });
        await owner.createPet({ name: "u" }, { transaction });
      });
      assert.strictEqual(await Owner.count({ where: { name: "t" } }), 1);
    },
    async rolled_back_transaction() {
      await assert.rejects(db.transaction(async (transaction) => {
        await Owner.create({ name: "never" }, { transaction });
        throw new Error("no");
      }));
      assert.strictEqual(await Owner.count({ where: { name: "never" } }), 0);
    },
    async isolation_level() {
      const isolationLevel = Sequelize.Transaction.ISOLATION_LEVELS.SERIALIZABLE;
      await db.transaction({ isolationLevel }, (transaction) => Owner.findAll({ transaction, lock: true }));
    },
    async unique_error() {
      await assert.rejects(Owner.create({ name: "b" }), UniqueConstraintError);
    },
    async destroy() {
      assert.strictEqual(await Owner.destroy({ where: { name: "d" } }), 1);
    },
    async json_query() {
      const found = await Owner.findAll({ where: { notes: { a: { [Op.ne]: null } } } });
      assert.strictEqual(found.length, 1);
    },
    async describe_table() {
      const columns = await db.getQueryInterface().describeTable("Owners");
      assert.strictEqual(columns.id.primaryKey, true);
      assert.strictEqual(columns.name.type, "CHARACTER VARYING(60)");
      assert.strictEqual(columns.name.allowNull, false);
    },
    async show_tables() {
      const tables = await db.getQueryInterface().showAllTables();
      assert(tables.includes("PetTags"), String(tables));
    },
    async show_indexes() {
      const indexes = await db.getQueryInterface().showIndex("Owners");
      assert(indexes.some((index) => index.primary), JSON.stringify(indexes));
    },
    async add_column() {
      await db.getQueryInterface().addColumn("Tags", "color", { type: DataTypes.STRING });
      assert("color" in (await db.getQueryInterface().describeTable("Tags")));
    },
    async add_index() {
      await db.getQueryInterface().addIndex("Tags", ["label"]);
    },
    async add_constraint() {
      await db.getQueryInterface().addConstraint("Tags", { fields: ["label"], type: "unique", name: "one_label" });
      await assert.rejects(Tag.create({ label: "old" }));
    },
    async change_column() {
      await db.getQueryInterface().changeColumn("Tags", "label", { type: DataTypes.TEXT, allowNull: false });
    },
    async sync_alter() {
      await db.sync({ alter: true });
    },
    async drop() {
      await db.drop();
    },
  },
  () => db.close(),
);

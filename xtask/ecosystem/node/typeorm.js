"use strict";
// TypeORM: synchronize, repositories, relations, transactions and migrations.

const { assert, packages, run, to } = require("./cases.js");
packages("reflect-metadata");
const { DataSource, EntitySchema, In, LessThan, TableColumn, TableIndex } = packages("typeorm");

const Team = new EntitySchema({
  name: "Team",
  tableName: "team",
  columns: { id: { type: Number, primary: true, generated: true }, name: { type: String, length: 40 } },
  relations: { players: { type: "one-to-many", target: "Player", inverseSide: "team" } },
});
const Player = new EntitySchema({
  name: "Player",
  tableName: "player",
  columns: {
    id: { type: Number, primary: true, generated: true },
    name: { type: String },
    rating: { type: "numeric", precision: 8, scale: 2, default: 0 },
    active: { type: Boolean, default: true },
    seen: { type: "timestamptz", createDate: true },
    extra: { type: "jsonb", nullable: true },
  },
  relations: { team: { type: "many-to-one", target: "Team", joinColumn: true, onDelete: "CASCADE",
    inverseSide: "players" } },
});
const options = { type: "postgres", host: to.host, port: to.port, username: to.user, database: to.database,
  installExtensions: false, entities: [Team, Player] };

class AddNickname1700000000000 {
  async up(runner) {
    await runner.addColumn("player", new TableColumn({ name: "nickname", type: "varchar", isNullable: true }));
    await runner.createIndex("player", new TableIndex({ name: "by_nickname", columnNames: ["nickname"] }));
  }
  async down(runner) {
    await runner.dropIndex("player", "by_nickname");
    await runner.dropColumn("player", "nickname");
  }
}

let db = new DataSource({ ...options, migrations: [AddNickname1700000000000] });
const teams = () => db.getRepository("Team");
const players = () => db.getRepository("Player");

run(
  {
    async initialize() {
      await db.initialize();
    },
    async synchronize() {
      await db.synchronize();
    },
    async synchronize_again() {
      const sql = await db.driver.createSchemaBuilder().log();
      assert.deepStrictEqual(sql.upQueries.map((query) => query.query), []);
    },
    async save() {
      const team = await teams().save({ name: "Reds" });
      assert.strictEqual(team.id, 1);
    },
    async save_with_relation() {
      const team = await teams().findOneBy({ name: "Reds" });
      const saved = await players().save([{ name: "a", team, rating: 3, extra: { x: 1 } }, { name: "b", team }]);
      assert.strictEqual(saved[1].id, 2);
      assert(saved[0].seen instanceof Date);
    },
    async find_with_relation() {
      const team = await teams().findOne({ where: { id: 1 }, relations: { players: true } });
      assert.deepStrictEqual(team.players.map((player) => player.name).sort(), ["a", "b"]);
    },
    async find_with_operators() {
      const found = await players().find({ where: { name: In(["a", "z"]), rating: LessThan(5) } });
      assert.deepStrictEqual(found.map((player) => [player.rating, player.extra]), [["3.00", { x: 1 }]]);
    },
    async query_builder() {
      const rows = await players().createQueryBuilder("p").innerJoin("p.team", "t").select("t.name", "team")
        .addSelect("count(*)", "n").groupBy("t.name").having("count(*) > :min", { min: 1 }).getRawMany();
      assert.deepStrictEqual(rows, [{ team: "Reds", n: "2" }]);
    },
    async paging() {
      const [rows, count] = await players().findAndCount({ order: { name: "DESC" }, take: 1, skip: 1 });
      assert.deepStrictEqual([rows[0].name, count], ["a", 2]);
    },
    async update_and_delete() {
      assert.strictEqual((await players().update({ name: "b" }, { active: false })).affected, 1);
      assert.strictEqual((await players().delete({ name: "b" })).affected, 1);
    },
    async transaction() {
      await db.transaction(async (manager) => {
        await manager.save("Team", { name: "Blues" });
      });
      assert.strictEqual(await teams().countBy({ name: "Blues" }), 1);
    },
    async rolled_back_transaction() {
      await assert.rejects(db.transaction(async (manager) => {
        await manager.save("Team", { name: "Nobodies" });
        throw new Error("no");
      }));
      assert.strictEqual(await teams().countBy({ name: "Nobodies" }), 0);
    },
    async serializable_transaction() {
      await db.transaction("SERIALIZABLE", (manager) => manager.find("Team"));
    },
    async migration() {
      const done = await db.runMigrations();
      assert.strictEqual(done.length, 1);
      const runner = db.createQueryRunner();
      const table = await runner.getTable("player");
      await runner.release();
      assert(table.columns.some((column) => column.name === "nickname"));
    },
    async revert_migration() {
      await db.undoLastMigration();
    },
    async cascade() {
      await teams().delete({ id: 1 });
      assert.strictEqual(await players().count(), 0);
    },
    async drop() {
      await db.dropDatabase();
    },
  },
  () => db.isInitialized && db.destroy(),
);

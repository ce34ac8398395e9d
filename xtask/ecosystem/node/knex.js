"use strict";
// Knex: its schema builder, migrations, queries and transactions.

const { assert, packages, run, to } = require("./cases.js");
const knex = packages("knex")({ client: "pg", connection: to, pool: { min: 0, max: 4 } });

// Migrations that are no files.
const migrations = {
  first: {
    up: (db) =>
      db.schema
        .createTable("knex_author", (table) => {
          table.increments("id");
          table.string("name", 80).notNullable();
          table.timestamps(true, true);
        })
        .createTable("knex_book", (table) => {
          table.increments("id");
          table.integer("author_id").notNullable().references("id").inTable("knex_author").onDelete("CASCADE");
          table.string("title").notNullable().index();
          table.decimal("price", 10, 2);
          table.boolean("sold").defaultTo(false);
          table.jsonb("extra");
        }),
    down: (db) => db.schema.dropTable("knex_book").dropTable("knex_author"),
  },
  second: {
    up: (db) => db.schema.alterTable("knex_book", (table) => table.string("isbn", 13)),
    down: (db) => db.schema.alterTable("knex_book", (table) => table.dropColumn("isbn")),
  },
  third: {
    up: (db) => db.schema.alterTable("knex_book", (table) => table.unique(["title", "author_id"])),
    down: (db) => db.schema.alterTable("knex_book", (table) => table.dropUnique(["title", "author_id"])),
  },
};
const source = (names) => ({
  getMigrations: async () => names,
  getMigrationName: (name) => name,
  getMigration: async (name) => migrations[name],
});
const migrate = (names) => knex.migrate.latest({ migrationSource: source(names) });

run(
  {
    async migrations_up() {
      await migrate(["first"]);
      assert(await knex.schema.hasTable("knex_book"));
    },
    async migration_adds_a_column() {
      await migrate(["first", "second"]);
      assert(await knex.schema.hasColumn("knex_book", "isbn"));
    },
    async rollback() {
      await knex.migrate.rollback({ migrationSource: source(["first", "second"]) });
      assert(!(await knex.schema.hasColumn("knex_book", "isbn")));
      await migrate(["first", "second"]);
    },
    async insert_returning() {
      const [one] = await knex("knex_author").insert({ name: "Ursula" }).returning(["id", "name"]);
      assert.deepStrictEqual(one, { id: 1, name: "Ursula" });
    },
    async insert_many() {
      const rows = [..."abc"].map((title) => ({ author_id: 1, title, price: "1.50", extra: { title } }));
      const ids = await knex("knex_book").insert(rows, "id");
      assert.strictEqual(ids.length, 3);
    },
    async select_where() {
      const rows = await knex("knex_book").where("title", "b").orWhereIn("title", ["c"]).orderBy("title");
      assert.deepStrictEqual(rows.map((row) => row.title), ["b", "c"]);
      assert.strictEqual(rows[0].price, "1.50");
      assert.deepStrictEqual(rows[0].extra, { title: "b" });
      assert.strictEqual(rows[0].sold, false);
    },
    async join_and_aggregate() {
      const rows = await knex("knex_book as b").join("knex_author as a", "a.id", "b.author_id").groupBy("a.name")
        .select("a.name").count("* as books").sum("b.price as total");
      assert.deepStrictEqual(rows, [{ name: "Ursula", books: "3", total: "4.50" }]);
    },
    async update_and_delete() {
      assert.strictEqual(await knex("knex_book").where({ title: "a" }).update({ sold: true }), 1);
      assert.strictEqual(await knex("knex_book").where("sold", true).del(), 1);
    },
    async increment() {
      await knex("knex_book").where("title", "b").increment("price", 2);
      assert.strictEqual((await knex("knex_book").first("price").where("title", "b")).price, "3.50");
    },
    async transaction_commits() {
      await knex.transaction(async (one) => {
        await one("knex_author").insert({ name: "Italo" });
        await one("knex_book").insert({ author_id: 2, title: "d" });
      });
      assert.strictEqual((await knex("knex_book").where({ author_id: 2 })).length, 1);
    },
    async transaction_rolls_back() {
      const work = knex.transaction(async (one) => {
        await one("knex_author").insert({ name: "Nobody" });
        throw new Error("no");
      });
      await assert.rejects(work);
      assert.strictEqual((await knex("knex_author").where({ name: "Nobody" })).length, 0);
    },
    async nested_transaction() {
      await knex.transaction(async (outer) => {
        await outer("knex_author").insert({ name: "Outer" });
        await outer.transaction(async (inner) => {
          await inner("knex_author").insert({ name: "Inner" });
          throw new Error("no");
        }).catch(() => {});
      });
      const names = (await knex("knex_author").whereIn("name", ["Outer", "Inner"])).map((row) => row.name);
      assert.deepStrictEqual(names, ["Outer"]);
    },
    async errors_have_codes() {
      await assert.rejects(knex("knex_book").insert({ author_id: 99, title: "x" }), { code: "23503" });
      await assert.rejects(knex("knex_book").insert({ author_id: 1 }), { code: "23502" });
    },
    async on_conflict_merge() {
      await knex("knex_author").insert({ id: 1, name: "Ursula K." }).onConflict("id").merge();
      assert.strictEqual((await knex("knex_author").first().where({ id: 1 })).name, "Ursula K.");
    },
    async column_info() {
      const info = await knex("knex_book").columnInfo();
      assert.strictEqual(info.title.type, "character varying");
      assert.strictEqual(info.title.maxLength, 255);
      assert.strictEqual(info.title.nullable, false);
    },
    async batch_insert() {
      const rows = Array.from({ length: 200 }, (_, at) => ({ name: `n${at}` }));
      await knex.batchInsert("knex_author", rows, 50);
      const [{ count }] = await knex("knex_author").where("name", "like", "n%").count();
      assert.strictEqual(count, "200");
    },
    async with_and_window() {
      const rows = await knex.with("b", knex("knex_book").select("title")).select("title").rowNumber("n", "title")
        .from("b").orderBy("title");
      assert.deepStrictEqual(rows.map((row) => row.n), ["1", "2", "3"]);
    },
    async migration_adds_a_constraint() {
      await migrate(["first", "second", "third"]);
      await assert.rejects(knex("knex_book").insert({ author_id: 1, title: "b" }), { code: "23505" });
    },
    async alter_column() {
      await knex.schema.alterTable("knex_book", (table) => table.text("title").notNullable().alter());
      assert.strictEqual((await knex("knex_book").columnInfo()).title.type, "text");
    },
    async rename_and_drop() {
      await knex.schema.renameTable("knex_book", "knex_volume");
      await knex.schema.alterTable("knex_volume", (table) => table.renameColumn("sold", "gone"));
      assert(await knex.schema.hasColumn("knex_volume", "gone"));
      await knex.schema.dropTable("knex_volume").dropTableIfExists("knex_author");
      assert(!(await knex.schema.hasTable("knex_volume")));
    },
  },
  () => knex.destroy(),
);

"use strict";
// Drizzle: queries, relations, transactions and the migrator.

const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const { assert, packages, run, to } = require("./cases.js");
const { Pool } = packages("pg");
const { drizzle } = packages("drizzle-orm/node-postgres");
const { migrate } = packages("drizzle-orm/node-postgres/migrator");
const { and, count, desc, eq, gt, inArray, relations, sql } = packages("drizzle-orm");
const core = packages("drizzle-orm/pg-core");

const city = core.pgTable("city", {
  id: core.serial("id").primaryKey(),
  name: core.varchar("name", { length: 50 }).notNull().unique(),
  people: core.bigint("people", { mode: "number" }),
  founded: core.timestamp("founded", { withTimezone: true }).defaultNow(),
  extra: core.jsonb("extra"),
});
const street = core.pgTable("street", {
  id: core.integer("id").primaryKey().generatedAlwaysAsIdentity(),
  cityId: core.integer("city_id").references(() => city.id, { onDelete: "cascade" }),
  name: core.text("name").notNull(),
  length: core.numeric("length", { precision: 8, scale: 2 }),
});
const cityRelations = relations(city, ({ many }) => ({ streets: many(street) }));
const streetRelations = relations(street, ({ one }) => ({
  city: one(city, { fields: [street.cityId], references: [city.id] }),
}));

const pool = new Pool({ ...to, max: 4 });
const db = drizzle(pool, { schema: { city, street, cityRelations, streetRelations } });
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "drizzle-"));

// What drizzle-kit would write for these tables.
function write_migration(folder, tag, at, text) {
  const meta = path.join(folder, "meta");
  fs.mkdirSync(meta, { recursive: true });
  const journal = path.join(meta, "_journal.json");
  const old = fs.existsSync(journal)
    ? JSON.parse(fs.readFileSync(journal))
    : { version: "7", dialect: "postgresql", entries: [] };
  old.entries.push({ idx: old.entries.length, version: "7", when: at, tag, breakpoints: true });
  fs.writeFileSync(journal, JSON.stringify(old));
  fs.writeFileSync(path.join(folder, `${tag}.sql`), text);
}

run(
  {
    async migrate() {
      write_migration(folder, "0000_one", 1_700_000_000_000, `CREATE TABLE "city" (
        "id" serial PRIMARY KEY NOT NULL,
        "name" varchar(50) NOT NULL,
        "people" bigint,
        "founded" timestamp with time zone DEFAULT now(),
        "extra" jsonb,
        CONSTRAINT "city_name_unique" UNIQUE("name")
      );
      --> statement-breakpoint
      CREATE TABLE "street" (
        "id" integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
        "city_id" integer REFERENCES "city"("id") ON DELETE CASCADE,
        "name" text NOT NULL,
        "length" numeric(8, 2)
      );`);
      await migrate(db, { migrationsFolder: folder, migrationsSchema: "public" });
    },
    async migrate_in_its_own_schema() {
      const other = fs.mkdtempSync(path.join(os.tmpdir(), "drizzle-"));
      const sql = `CREATE TABLE "other" ("id" serial PRIMARY KEY NOT NULL);`;
      write_migration(other, "0000_other", 1_700_000_000_000, sql);
      await migrate(db, { migrationsFolder: other });
      fs.rmSync(other, { recursive: true });
    },
    async insert_returning() {
      const rows = await db.insert(city).values([{ name: "Oslo", people: 700000, extra: { a: 1 } }, { name: "Bergen" }])
        .returning();
      assert.deepStrictEqual(rows.map((row) => row.id), [1, 2]);
      assert(rows[0].founded instanceof Date);
      assert.deepStrictEqual(rows[0].extra, { a: 1 });
    },
    async select() {
      const rows = await db.select({ name: city.name }).from(city).where(and(gt(city.people, 5), eq(city.id, 1)));
      assert.deepStrictEqual(rows, [{ name: "Oslo" }]);
    },
    async join() {
      await db.insert(street).values([{ cityId: 1, name: "A", length: "1.50" }, { cityId: 1, name: "B" }]);
      const rows = await db.select({ city: city.name, streets: count() }).from(street)
        .innerJoin(city, eq(city.id, street.cityId)).groupBy(city.name);
      assert.deepStrictEqual(rows, [{ city: "Oslo", streets: 2 }]);
    },
    async order_and_limit() {
      const rows = await db.select().from(street).orderBy(desc(street.name)).limit(1).offset(1);
      assert.deepStrictEqual([rows[0].name, rows[0].length], ["A", "1.50"]);
    },
    async update_and_delete() {
      const [row] = await db.update(street).set({ name: sql`upper(${street.name}) || 'x'` }).where(eq(street.id, 2))
        .returning({ name: street.name });
      assert.strictEqual(row.name, "Bx");
      const gone = await db.delete(street).where(inArray(street.id, [2])).returning();
      assert.strictEqual(gone.length, 1);
    },
    async upsert() {
      await db.insert(city).values({ name: "Oslo" }).onConflictDoUpdate({ target: city.name, set: { people: 8 } });
      assert.strictEqual((await db.select().from(city).where(eq(city.name, "Oslo")))[0].people, 8);
    },
    async transaction() {
      await db.transaction(async (one) => {
        await one.insert(city).values({ name: "Moss" });
        await one.transaction(async (inner) => {
          await inner.insert(city).values({ name: "Never" });
          inner.rollback();
        }).catch(() => {});
      });
      const names = (await db.select().from(city)).map((row) => row.name).sort();
      assert.deepStrictEqual(names, ["Bergen", "Moss", "Oslo"]);
    },
    async serializable_transaction() {
      await db.transaction((one) => one.select().from(city), { isolationLevel: "serializable" });
    },
    async prepared() {
      const query = db.select().from(city).where(eq(city.id, sql.placeholder("id"))).prepare("by_id");
      assert.strictEqual((await query.execute({ id: 1 }))[0].name, "Oslo");
      assert.strictEqual((await query.execute({ id: 2 }))[0].name, "Bergen");
    },
    async relational_query() {
      const rows = await db.query.city.findMany({ with: { streets: true }, where: eq(city.id, 1) });
      assert.deepStrictEqual(rows[0].streets.map((one) => one.name), ["A"]);
    },
    async count() {
      assert.strictEqual(await db.$count(city), 3);
    },
    async cte() {
      const large = db.$with("large").as(db.select().from(city).where(gt(city.people, 1)));
      assert.strictEqual((await db.with(large).select().from(large)).length, 1);
    },
    async migrate_adds_a_constraint() {
      write_migration(folder, "0001_two", 1_700_000_001_000, `ALTER TABLE "street" ADD COLUMN "kind" text;
      --> statement-breakpoint
      ALTER TABLE "street" ADD CONSTRAINT "street_name_unique" UNIQUE("name");`);
      await migrate(db, { migrationsFolder: folder, migrationsSchema: "public" });
      await assert.rejects(db.insert(street).values({ name: "A" }));
    },
  },
  async () => {
    fs.rmSync(folder, { recursive: true });
    await pool.end();
  },
);

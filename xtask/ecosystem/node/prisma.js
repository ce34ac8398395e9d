"use strict";
// Prisma: its migrations, its client and its errors, through the engines in WASM that its packages carry.

const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const { execFile } = require("node:child_process");
const { promisify } = require("node:util");
const { assert, packages, run, url } = require("./cases.js");
const { PrismaPg } = packages("@prisma/adapter-pg");
const { Pool } = packages("pg");

const modules = path.dirname(path.dirname(packages.resolve("prisma/package.json")));
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "prisma-"));
fs.symlinkSync(modules, path.join(folder, "node_modules"));
fs.mkdirSync(path.join(folder, "migrations"));
fs.writeFileSync(path.join(folder, "migrations/migration_lock.toml"), `provider = "postgresql"\n`);

// The adapter does not know the types "char" and name, for which the migrations ask the catalog
// (https://github.com/prisma/prisma/issues/27403). So their columns are told as text.
fs.writeFileSync(path.join(folder, "prisma.config.mjs"), `
import { PrismaPg } from "@prisma/adapter-pg";
import { Pool } from "pg";
const pool = new Pool({ connectionString: process.env.DATABASE_URL, allowExitOnIdle: true });
pool.on("connect", (client) => client.connection.prependListener("rowDescription", ({ fields }) => {
  for (const field of fields) {
    if ([18, 19].includes(field.dataTypeID)) field.dataTypeID = 25;
  }
}));
export default {
  experimental: { adapter: true },
  engine: "js",
  adapter: async () => new PrismaPg(pool),
  migrations: { path: "migrations" },
  schema: "second.prisma",
};
`);

// What a schema says beside its models: where its client goes to, and what that may do.
function write_schema(name, models, features = "") {
  fs.writeFileSync(path.join(folder, `${name}.prisma`), `
generator client {
  provider        = "prisma-client-js"
  engineType      = "client"
  output          = "./${name}"
  previewFeatures = [${features}]
}
datasource db {
  provider = "postgresql"
  url      = env("DATABASE_URL")
}
${models}`);
}

const first = `
model City {
  id      Int      @id @default(autoincrement())
  name    String   @unique @db.VarChar(50)
  people  BigInt?
  founded DateTime @default(now()) @db.Timestamptz(6)
  streets Street[]
}
model Street {
  id     String   @id @default(uuid()) @db.Uuid
  name   String
  length Decimal? @db.Decimal(8, 2)
  city   City?    @relation(fields: [cityId], references: [id], onDelete: Cascade)
  cityId Int?     @map("city_id")
  @@map("street")
}
`;
const second = `
model City {
  id      Int      @id @default(autoincrement())
  name    String   @unique @db.VarChar(60)
  people  BigInt?
  founded DateTime @default(now()) @db.Timestamptz(6)
  changed DateTime @default(now()) @updatedAt @db.Timestamp(6)
  opened  DateTime? @db.Date
  capital Boolean  @default(false)
  extra   Json?
  flag    Bytes?
  height  Float?
  streets Street[]
}
model Street {
  id     String   @id @default(uuid()) @db.Uuid
  name   String
  length Decimal? @db.Decimal(8, 2)
  city   City?    @relation(fields: [cityId], references: [id], onDelete: Cascade)
  cityId Int?     @map("city_id")
  lines  Line[]
  @@unique([cityId, name])
  @@index([name, length(sort: Desc)])
  @@map("street")
}
model Line {
  id      Int      @id @default(autoincrement())
  name    String   @unique
  streets Street[]
}
`;
write_schema("first", first);
write_schema("second", second);
write_schema("third", second.replace("model Line {", "model Line {\n  color String @default(\"red\")\n"));
write_schema("nothing", "");
write_schema("joins", second, `"relationJoins"`);

const cli = packages.resolve("prisma/build/index.js");
const environment = { ...process.env, DATABASE_URL: url, CHECKPOINT_DISABLE: "1", PRISMA_HIDE_UPDATE_MESSAGE: "1" };

async function prisma(...words) {
  const { stdout } = await promisify(execFile)(process.execPath, [cli, ...words], { cwd: folder, env: environment });
  return stdout;
}

// What `prisma migrate dev` writes, which wants a terminal and a second database.
async function write_migration(name, from, to) {
  const into = path.join(folder, "migrations", name);
  fs.mkdirSync(into);
  await prisma("migrate", "diff", ...from, "--to-schema-datamodel", `${to}.prisma`, "--script",
    "--output", path.join(into, "migration.sql"));
}

// Creates the tables of a schema beside all others.
async function create_tables(name) {
  const pool = new Pool({ connectionString: url });
  try {
    const to = `${name}.prisma`;
    await pool.query(await prisma("migrate", "diff", "--from-empty", "--to-schema-datamodel", to, "--script"));
  } finally {
    await pool.end();
  }
}

let db;
let Prisma;

async function client(name) {
  await prisma("generate", "--schema", `${name}.prisma`, "--no-hints");
  const made = require(path.join(folder, name));
  const one = new made.PrismaClient({
    adapter: new PrismaPg({ connectionString: url, max: 4 }),
    errorFormat: "minimal",
    transactionOptions: { maxWait: 20_000, timeout: 20_000 },
  });
  return { one, Prisma: made.Prisma };
}

const names = (rows) => rows.map((row) => row.name);
const cause = (error) => error.meta?.driverAdapterError?.cause ?? {};
const is = (code) => (error) => {
  assert.strictEqual(error.code, code, error.message);
  return true;
};
const is_about = (what) => (error) => {
  assert.deepStrictEqual(cause(error).constraint, what);
  return true;
};

const tools = {
  async connect() {
    ({ one: db, Prisma } = await client("second"));
    await db.$connect();
    assert.deepStrictEqual(await db.$queryRaw`SELECT 1 AS one`, [{ one: 1 }]);
  },
  async migrate() {
    await write_migration("0001_first", ["--from-empty"], "first");
    assert.match(await prisma("migrate", "deploy", "--schema", "first.prisma"), /successfully applied/);
  },
  async migrate_again() {
    await write_migration("0002_second", ["--from-schema-datamodel", "first.prisma"], "second");
    assert.match(await prisma("migrate", "deploy"), /0002_second/);
    assert.match(await prisma("migrate", "status"), /up to date/);
  },
  async introspect() {
    const there = await db.$queryRaw`SELECT 1 FROM information_schema.tables WHERE table_name = 'City'`;
    if (there.length === 0) {
      // Where nothing could be migrated.
      await create_tables("second");
    }
    const told = await prisma("db", "pull", "--print", "--schema", "nothing.prisma");
    assert.match(told, /model City \{\s+id +Int +@id @default\(autoincrement\(\)\)\s+name +String +@unique @db/);
    assert.match(told, /City +City\? +@relation\(fields: \[city_id\], references: \[id\], onDelete: Cascade\)/);
    assert.match(told, /@@index\(\[name, length\(sort: Desc\)\]\)/);
  },
  async push() {
    assert.match(await prisma("db", "push", "--schema", "third.prisma", "--skip-generate"), /in sync/);
    assert.match(await prisma("db", "push", "--schema", "third.prisma", "--skip-generate"), /already in sync/);
  },
  async failed_migration() {
    const into = path.join(folder, "migrations/0003_wrong");
    fs.mkdirSync(into);
    fs.writeFileSync(path.join(into, "migration.sql"), `ALTER TABLE "nowhere" ADD COLUMN "a" TEXT;`);
    await assert.rejects(prisma("migrate", "deploy"), /nowhere/);
    await assert.rejects(prisma("migrate", "deploy"), /P3009/);
  },
};

const writes = {
  async create() {
    const row = await db.city.create({ data: { name: "Oslo", people: 700000n } });
    assert.deepStrictEqual([row.id, row.name, row.people, row.capital], [1, "Oslo", 700000n, false]);
    assert(row.founded instanceof Date);
  },
  async create_many() {
    const data = [{ name: "Bergen", people: 290000n }, { name: "Moss" }, { name: "Oslo" }];
    assert.deepStrictEqual(await db.city.createMany({ data, skipDuplicates: true }), { count: 2 });
  },
  async create_many_and_return() {
    const data = [{ name: "Hamar", people: 32000n }, { name: "Narvik", people: 14000n }];
    const rows = await db.city.createManyAndReturn({ data, select: { name: true, people: true } });
    assert.deepStrictEqual(rows, data);
  },
  async nested_create() {
    const row = await db.city.create({
      data: { name: "Bodø", people: 53000n, streets: { create: [{ name: "A", length: "1.50" }, { name: "B" }] } },
      include: { streets: { orderBy: { name: "asc" } } },
    });
    assert.deepStrictEqual(names(row.streets), ["A", "B"]);
    assert.strictEqual(row.streets[0].length.toFixed(2), "1.50");
  },
  async connect_and_disconnect() {
    const { id } = await db.street.create({ data: { name: "C", length: "7.25", city: { connect: { name: "Oslo" } } } });
    await db.street.update({ where: { id }, data: { city: { disconnect: true } } });
    assert.strictEqual((await db.street.findUnique({ where: { id } })).cityId, null);
    await db.city.update({ where: { name: "Oslo" }, data: { streets: { connect: { id } } } });
    assert.strictEqual((await db.street.findUnique({ where: { id } })).cityId, 1);
  },
  async connect_or_create() {
    const line = { where: { name: "1" }, create: { name: "1" } };
    await db.street.create({ data: { name: "D", cityId: 1, lines: { connectOrCreate: [line] } } });
    await db.street.updateMany({ where: { name: "D" }, data: { length: "3" } });
    const c = await db.street.findFirstOrThrow({ where: { name: "C" } });
    await db.street.update({ where: { id: c.id }, data: { lines: { connectOrCreate: line, create: { name: "2" } } } });
    const rows = await db.line.findMany({
      orderBy: { name: "asc" }, include: { streets: { orderBy: { name: "asc" } } },
    });
    assert.deepStrictEqual(rows.map((row) => names(row.streets)), [["C", "D"], ["C"]]);
  },
  async set_relations() {
    const { id } = await db.street.findFirstOrThrow({ where: { name: "C" } });
    const row = await db.street.update({
      where: { id }, data: { lines: { set: [{ name: "2" }] } }, include: { lines: true },
    });
    assert.deepStrictEqual(names(row.lines), ["2"]);
  },
  async update() {
    const row = await db.city.update({ where: { name: "Moss" }, data: { people: 50000n, height: 1.5 } });
    assert.deepStrictEqual([row.people, row.height], [50000n, 1.5]);
    const more = await db.city.update({
      where: { id: row.id }, data: { people: { increment: 5 }, height: { multiply: 2 } },
      select: { people: true, height: true },
    });
    assert.deepStrictEqual(more, { people: 50005n, height: 3 });
  },
  async update_many() {
    const where = { people: { lt: 40000n } };
    assert.deepStrictEqual(await db.city.updateMany({ where, data: { capital: true } }), { count: 2 });
    const rows = await db.city.updateManyAndReturn({ where, data: { capital: false } });
    assert.deepStrictEqual(names(rows).sort(), ["Hamar", "Narvik"]);
  },
  async upsert() {
    const upsert = (people) => db.city.upsert({
      where: { name: "Vadsø" }, create: { name: "Vadsø", people }, update: { people },
    });
    assert.strictEqual((await upsert(1n)).people, 1n);
    assert.strictEqual((await upsert(5500n)).people, 5500n);
  },
  async upsert_in_two_steps() {
    const upsert = () => db.city.upsert({
      where: { name: "Vardø" }, create: { name: "Vardø", streets: { create: { name: "E" } } },
      update: { streets: { create: { name: "F" } } }, include: { streets: true },
    });
    assert.deepStrictEqual(names((await upsert()).streets), ["E"]);
    assert.deepStrictEqual(names((await upsert()).streets).sort(), ["E", "F"]);
  },
  async delete() {
    const row = await db.city.delete({ where: { name: "Vardø" }, include: { streets: true } });
    assert.strictEqual(row.streets.length, 2);
    assert.strictEqual(await db.street.count({ where: { name: { in: ["E", "F"] } } }), 0);
    assert.strictEqual((await db.city.delete({ where: { name: "Vadsø" } })).people, 5500n);
  },
  async delete_many() {
    await db.line.createMany({ data: [{ name: "8" }, { name: "9" }] });
    assert.deepStrictEqual(await db.line.deleteMany({ where: { name: { in: ["8", "9"] } } }), { count: 2 });
  },
};

const reads = {
  async find_unique() {
    assert.strictEqual((await db.city.findUnique({ where: { id: 1 } })).name, "Oslo");
    assert.strictEqual(await db.city.findUnique({ where: { id: 99 } }), null);
    const where = { cityId_name: { cityId: 1, name: "C" } };
    assert.strictEqual((await db.street.findUnique({ where })).name, "C");
  },
  async find_unique_batched() {
    const rows = await Promise.all([1, 2].map((id) => db.city.findUnique({ where: { id } })));
    assert.deepStrictEqual(names(rows), ["Oslo", "Bergen"]);
  },
  async find_first() {
    const row = await db.city.findFirst({ where: { people: { gte: 30000n } }, orderBy: { people: "asc" } });
    assert.strictEqual(row.name, "Hamar");
  },
  async find_many() {
    const rows = await db.city.findMany({
      where: { OR: [{ name: "Oslo" }, { people: { gt: 200000n } }], NOT: { id: { in: [7, 8] } }, height: null },
      orderBy: [{ capital: "asc" }, { name: "desc" }],
    });
    assert.deepStrictEqual(names(rows), ["Oslo", "Bergen"]);
  },
  async skip_and_take() {
    const rows = await db.city.findMany({ orderBy: { name: "asc" }, skip: 1, take: 2 });
    assert.deepStrictEqual(names(rows), ["Bodø", "Hamar"]);
    assert.deepStrictEqual(names(await db.city.findMany({ orderBy: { name: "asc" }, take: -1 })), ["Oslo"]);
  },
  async cursor() {
    const rows = await db.city.findMany({ orderBy: { name: "asc" }, cursor: { name: "Hamar" }, skip: 1, take: 2 });
    assert.deepStrictEqual(names(rows), ["Moss", "Narvik"]);
    const back = await db.city.findMany({ orderBy: { people: "desc" }, cursor: { name: "Bodø" }, take: -2 });
    assert.deepStrictEqual(names(back), ["Bergen", "Bodø"]);
  },
  async order_with_nulls() {
    const rows = await db.street.findMany({ orderBy: [{ length: { sort: "desc", nulls: "last" } }, { name: "asc" }] });
    assert.deepStrictEqual(names(rows), ["C", "D", "A", "B"]);
  },
  async order_by_relation() {
    const rows = await db.street.findMany({ orderBy: [{ city: { name: "desc" } }, { name: "desc" }] });
    assert.deepStrictEqual(names(rows), ["D", "C", "B", "A"]);
    const most = await db.city.findMany({ orderBy: [{ streets: { _count: "desc" } }, { name: "desc" }], take: 3 });
    assert.deepStrictEqual(names(most), ["Oslo", "Bodø", "Narvik"]);
  },
  async select_and_include() {
    const row = await db.city.findUnique({
      where: { id: 1 }, select: { streets: { select: { name: true, lines: true }, orderBy: { name: "asc" } } },
    });
    assert.deepStrictEqual(row.streets.map((one) => names(one.lines)), [["2"], ["1"]]);
    const rows = await db.street.findMany({ include: { city: true }, orderBy: { name: "asc" } });
    assert.deepStrictEqual(rows.map((one) => one.city.name), ["Bodø", "Bodø", "Oslo", "Oslo"]);
  },
  async include_some() {
    const rows = await db.city.findMany({
      include: { streets: { where: { length: { not: null } }, orderBy: { name: "desc" }, take: 1 } },
      orderBy: { id: "asc" },
    });
    assert.deepStrictEqual(rows.flatMap((row) => names(row.streets)), ["D", "A"]);
  },
  async fluent() {
    assert.strictEqual((await db.city.findUnique({ where: { id: 1 } }).streets()).length, 2);
  },
  async relation_filters() {
    const cities = async (where) => names(await db.city.findMany({ where, orderBy: { name: "asc" } }));
    assert.deepStrictEqual(await cities({ streets: { some: { length: { gt: "5" } } } }), ["Oslo"]);
    assert.deepStrictEqual(await cities({ streets: { none: {} }, people: { gt: 40000n } }), ["Bergen", "Moss"]);
    assert.deepStrictEqual(await cities({ streets: { every: { length: { not: null } } }, id: 1 }), ["Oslo"]);
    assert.strictEqual(await db.street.count({ where: { city: { is: { name: "Bodø" } } } }), 2);
    assert.strictEqual(await db.street.count({ where: { lines: { some: { name: "1" } } } }), 1);
  },
  async count_relations() {
    const rows = await db.city.findMany({
      select: { name: true, _count: { select: { streets: true } } }, where: { name: { in: ["Moss", "Oslo"] } },
      orderBy: { name: "asc" },
    });
    assert.deepStrictEqual(rows.map((row) => row._count.streets), [0, 2]);
    const some = await db.city.findFirst({
      select: { _count: { select: { streets: { where: { name: "C" } } } } }, where: { id: 1 },
    });
    assert.strictEqual(some._count.streets, 1);
  },
  async count() {
    assert.strictEqual(await db.city.count(), 6);
    assert.deepStrictEqual(await db.city.count({ select: { _all: true, height: true } }), { _all: 6, height: 1 });
  },
  async aggregate() {
    const { _sum, _avg, _min, _max, _count } = await db.city.aggregate({
      where: { name: { in: ["Hamar", "Narvik"] } },
      _sum: { people: true, height: true }, _avg: { people: true, id: true }, _min: { people: true, name: true },
      _max: { people: true, founded: true }, _count: true,
    });
    assert.deepStrictEqual([_sum.people, _sum.height, _avg.people], [46000n, null, 23000]);
    assert.deepStrictEqual([_min, _max.people, _count], [{ people: 14000n, name: "Hamar" }, 32000n, 2]);
    assert(_max.founded instanceof Date);
    const { _avg: average } = await db.street.aggregate({ _avg: { length: true } });
    assert.strictEqual(average.length.toFixed(4), "3.9167");
  },
  async group_by() {
    const rows = await db.street.groupBy({
      by: ["cityId"], where: { length: { not: null } }, _count: { _all: true }, _sum: { length: true },
      having: { length: { _sum: { gt: 2 } } }, orderBy: { cityId: "asc" },
    });
    const found = rows.map((row) => [row.cityId, row._count._all, row._sum.length.toFixed(2)]);
    assert.deepStrictEqual(found, [[1, 2, "10.25"]]);
    const counts = await db.street.groupBy({
      by: "cityId", _count: true, orderBy: { _count: { name: "desc" } }, take: 1,
    });
    assert.strictEqual(counts[0]._count, 2);
  },
  async distinct() {
    const rows = await db.street.findMany({ distinct: ["cityId"], orderBy: [{ cityId: "asc" }, { name: "asc" }] });
    assert.deepStrictEqual(names(rows), ["C", "A"]);
  },
  async null_filters() {
    assert.deepStrictEqual(names(await db.street.findMany({ where: { length: null } })), ["B"]);
    assert.strictEqual(await db.street.count({ where: { NOT: { length: null } } }), 3);
    assert.strictEqual(await db.street.count({ where: { NOT: { length: { gt: 5 } } } }), 2);
  },
  async text_filters() {
    const count = (name) => db.city.count({ where: { name } });
    const found = [await count({ contains: "s" }), await count({ startsWith: "B" }), await count({ endsWith: "r" })];
    assert.deepStrictEqual(found, [2, 2, 1]);
    assert.deepStrictEqual([await count({ contains: "_" }), await count({ not: "Oslo" }), await count({ gt: "Moss" })],
      [6, 5, 2]);
  },
  async text_filters_of_any_case() {
    const count = (name) => db.city.count({ where: { name: { ...name, mode: "insensitive" } } });
    const found = [await count({ contains: "OS" }), await count({ startsWith: "b" }), await count({ equals: "oslo" })];
    assert.deepStrictEqual(found, [2, 2, 1]);
    assert.deepStrictEqual([await count({ in: ["OSLO", "moss"] }), await count({ not: "oslo" })], [2, 5]);
  },
  async compare_columns() {
    const { id, height } = db.city.fields;
    assert.strictEqual(await db.city.count({ where: { id: { lte: id } } }), 6);
    assert.strictEqual(await db.city.count({ where: { height: { lt: height } } }), 0);
  },
  async relation_by_queries() {
    const { one } = await client("joins");
    const row = await one.city.findUnique({
      relationLoadStrategy: "query", where: { id: 1 }, include: { streets: true },
    });
    assert.strictEqual(row.streets.length, 2);
  },
  async relation_by_joins() {
    const { one } = await client("joins");
    const row = await one.city.findUnique({
      relationLoadStrategy: "join", where: { id: 1 }, include: { streets: true },
    });
    assert.strictEqual(row.streets.length, 2);
  },
};

const types = {
  async decimals() {
    const values = ["123456.78", "-0.01", "0.10"];
    for (const [at, length] of values.entries()) {
      const row = await db.street.create({ data: { name: `decimal ${at}`, length: new Prisma.Decimal(length) } });
      assert.strictEqual(row.length.toFixed(2), length);
    }
    assert.strictEqual(await db.street.count({ where: { length: { in: ["0.1", "-0.01"] } } }), 2);
    await db.street.deleteMany({ where: { name: { startsWith: "decimal" } } });
  },
  async big_integers() {
    const people = 9223372036854775807n;
    const row = await db.city.update({ where: { name: "Moss" }, data: { people } });
    assert.strictEqual(row.people, people);
    assert.strictEqual(await db.city.count({ where: { people } }), 1);
  },
  async dates() {
    const founded = new Date("1624-09-27T12:34:56.789Z");
    const opened = new Date("2000-02-29");
    const row = await db.city.update({ where: { name: "Moss" }, data: { founded, opened, changed: founded } });
    assert.deepStrictEqual([row.founded, row.opened, row.changed], [founded, opened, founded]);
    assert.strictEqual(await db.city.count({ where: { founded, opened } }), 1);
    assert.strictEqual(await db.city.count({ where: { changed: { lte: founded }, opened: { gte: opened } } }), 1);
    const later = await db.city.update({ where: { name: "Moss" }, data: { height: 2 } });
    assert(later.changed > founded);
  },
  async json() {
    const extra = { a: [1, 2.5, "x", null], b: { c: true } };
    assert.deepStrictEqual((await db.city.update({ where: { name: "Moss" }, data: { extra } })).extra, extra);
    assert.deepStrictEqual((await db.city.findUnique({ where: { name: "Moss" } })).extra, extra);
  },
  async json_nulls() {
    const row = await db.city.update({ where: { name: "Hamar" }, data: { extra: Prisma.JsonNull } });
    assert.strictEqual(row.extra, null);
    assert.strictEqual(await db.city.count({ where: { extra: { equals: Prisma.DbNull } } }), 4);
    await db.city.update({ where: { name: "Hamar" }, data: { extra: Prisma.DbNull } });
    assert.strictEqual(await db.city.count({ where: { extra: { equals: Prisma.DbNull } } }), 5);
  },
  async json_filter_by_value() {
    const extra = { b: { c: true }, a: [1, 2.5, "x", null] };
    assert.strictEqual(await db.city.count({ where: { extra: { equals: extra } } }), 1);
  },
  async json_filter_by_path() {
    assert.strictEqual(await db.city.count({ where: { extra: { path: ["b", "c"], equals: true } } }), 1);
  },
  async json_filter_by_text() {
    assert.strictEqual(await db.city.count({ where: { extra: { path: ["a", "2"], string_contains: "x" } } }), 1);
  },
  async json_filter_by_element() {
    assert.strictEqual(await db.city.count({ where: { extra: { path: ["a"], array_contains: [1] } } }), 1);
  },
  async bytes() {
    const flag = Uint8Array.from([0, 255, 39, 92]);
    const row = await db.city.update({ where: { name: "Moss" }, data: { flag } });
    assert.deepStrictEqual([...row.flag], [...flag]);
    assert.strictEqual(await db.city.count({ where: { flag } }), 1);
  },
  async booleans() {
    await db.city.update({ where: { name: "Oslo" }, data: { capital: true } });
    assert.deepStrictEqual(names(await db.city.findMany({ where: { capital: true } })), ["Oslo"]);
    assert.strictEqual(await db.city.count({ where: { NOT: { capital: true } } }), 5);
  },
  async dates_by_default() {
    write_schema("moments", "model Moment {\n id Int @id @default(autoincrement())\n at DateTime @default(now())\n}");
    await create_tables("moments");
    const { one } = await client("moments");
    const at = new Date("2024-02-29T12:34:56.789Z");
    assert.deepStrictEqual(await one.moment.create({ data: { at } }), { id: 1, at });
  },
  async decimals_by_default() {
    write_schema("prices", "model Price {\n id BigInt @id @default(autoincrement())\n value Decimal\n}");
    await create_tables("prices");
    const { one } = await client("prices");
    const { id, value } = await one.price.create({ data: { value: "12345678901234567890.123" } });
    assert.deepStrictEqual([id, value.toFixed()], [1n, "12345678901234567890.123"]);
  },
  async other_types() {
    write_schema("others", `model Other {
      id Int @id @default(autoincrement()) @db.SmallInt
      real Float @db.Real
      letters String @db.Char(3)
      time DateTime @db.Time(6)
      plain Json @db.Json
      key String @default(dbgenerated("gen_random_uuid()")) @db.Uuid
      short String @default(cuid())
      @@unique([real, letters], name: "both")
    }`);
    await create_tables("others");
    const { one } = await client("others");
    const time = new Date("1970-01-01T12:34:56.000Z");
    const row = await one.other.create({ data: { real: 0.5, letters: "abc", time, plain: { a: 1 } } });
    assert.deepStrictEqual([row.real, row.letters, row.time, row.plain], [0.5, "abc", time, { a: 1 }]);
    const where = { both: { real: 0.5, letters: "abc" } };
    assert.strictEqual((await one.other.findUnique({ where })).key.length, 36);
  },
  async enums() {
    write_schema("enums", "enum Color {\n RED\n GREEN\n}\nmodel Car {\n id Int @id\n color Color @default(RED)\n}");
    await create_tables("enums");
    const { one } = await client("enums");
    assert.deepStrictEqual(await one.car.create({ data: { id: 1 } }), { id: 1, color: "RED" });
    assert.strictEqual(await one.car.count({ where: { color: { in: ["GREEN"] } } }), 0);
  },
  async lists() {
    write_schema("lists", "model List {\n id Int @id\n words String[]\n}");
    await create_tables("lists");
    const { one } = await client("lists");
    const words = ["a", "b c"];
    assert.deepStrictEqual(await one.list.create({ data: { id: 1, words } }), { id: 1, words });
    assert.strictEqual(await one.list.count({ where: { words: { has: "a" } } }), 1);
  },
};

// Somebody else writes what a transaction has read and writes, too.
async function conflict() {
  const add = (one) => one.city.update({ where: { id: 2 }, data: { people: { increment: 1 } } });
  await db.$transaction(async (one) => {
    await one.city.findUnique({ where: { id: 2 } });
    await add(db);
    await add(one);
  }, { isolationLevel: Prisma.TransactionIsolationLevel.Serializable });
}

const transactions = {
  async batch() {
    const [row, count] = await db.$transaction([db.line.create({ data: { name: "3" } }), db.line.count()]);
    assert.deepStrictEqual([row.name, count], ["3", 3]);
  },
  async batch_with_rollback() {
    const create = (name) => db.line.create({ data: { name } });
    await assert.rejects(db.$transaction([create("4"), create("3")]), is("P2002"));
    assert.strictEqual(await db.line.count(), 3);
  },
  async interactive() {
    const id = await db.$transaction(async (one) => {
      const row = await one.line.create({ data: { name: "4" } });
      await one.line.update({ where: { id: row.id }, data: { name: "5" } });
      return row.id;
    });
    assert.strictEqual((await db.line.findUnique({ where: { id } })).name, "5");
  },
  async interactive_with_rollback() {
    const work = db.$transaction(async (one) => {
      await one.line.deleteMany();
      assert.strictEqual(await one.line.count(), 0);
      throw new Error("no");
    });
    await assert.rejects(work, /no/);
    assert.strictEqual(await db.line.count(), 4);
  },
  async serializable() {
    const options = { isolationLevel: Prisma.TransactionIsolationLevel.Serializable };
    await db.$transaction(async (one) => {
      await one.line.delete({ where: { name: "5" } });
      assert.strictEqual(await one.line.count(), 3);
    }, options);
    assert.deepStrictEqual(await db.$transaction([db.line.count()], options), [3]);
  },
  async write_conflict() {
    const before = (await db.city.findUnique({ where: { id: 2 } })).people;
    await assert.rejects(conflict(), /conflict/i);
    assert.strictEqual((await db.city.findUnique({ where: { id: 2 } })).people, before + 1n);
  },
  async code_of_write_conflict() {
    await assert.rejects(conflict(), is("P2034"));
  },
};

const errors = {
  async not_unique() {
    await assert.rejects(db.city.create({ data: { name: "Oslo" } }), is("P2002"));
    await assert.rejects(db.street.create({ data: { name: "C", cityId: 1 } }), is("P2002"));
  },
  async target_of_not_unique() {
    await assert.rejects(db.city.create({ data: { name: "Oslo" } }), is_about({ fields: ["name"] }));
    const twice = db.street.create({ data: { name: "C", cityId: 1 } });
    await assert.rejects(twice, is_about({ fields: ["city_id", "name"] }));
  },
  async no_such_parent() {
    await assert.rejects(db.street.create({ data: { name: "Z", cityId: 999 } }), is("P2003"));
  },
  async target_of_no_such_parent() {
    const orphan = db.street.create({ data: { name: "Z", cityId: 999 } });
    await assert.rejects(orphan, is_about({ index: "street_city_id_fkey" }));
  },
  async not_found() {
    await assert.rejects(db.city.update({ where: { id: 999 }, data: { height: 1 } }), is("P2025"));
    await assert.rejects(db.city.delete({ where: { id: 999 } }), is("P2025"));
    await assert.rejects(db.city.findUniqueOrThrow({ where: { id: 999 } }), is("P2025"));
    await assert.rejects(db.street.create({ data: { name: "Z", city: { connect: { id: 999 } } } }), is("P2025"));
  },
  async too_long() {
    await assert.rejects(db.city.create({ data: { name: "x".repeat(61) } }), is("P2000"));
  },
  async null_violation() {
    await assert.rejects(db.$executeRaw`INSERT INTO "Line" (name) VALUES (NULL)`, (error) => {
      assert.deepStrictEqual([error.code, cause(error).originalCode], ["P2010", "23502"]);
      return true;
    });
  },
  async no_such_table() {
    await db.$executeRaw`DROP TABLE "Price"`;
    const { one } = await client("prices");
    await assert.rejects(one.price.count(), is("P2021"));
  },
};

const raw = {
  async query_raw() {
    const rows = await db.$queryRaw`SELECT "name", "people", "capital" FROM "City"
      WHERE "id" = ${1} OR "name" = ${"Hamar"} ORDER BY "name" DESC`;
    assert.deepStrictEqual(rows, [
      { name: "Oslo", people: 700000n, capital: true }, { name: "Hamar", people: 32000n, capital: false },
    ]);
  },
  async query_raw_in_list() {
    const ids = Prisma.join([1, 2]);
    const order = Prisma.sql`ORDER BY ${Prisma.raw(`"name"`)}`;
    assert.deepStrictEqual(names(await db.$queryRaw`SELECT "name" FROM "City" WHERE "id" IN (${ids}) ${order}`),
      ["Bergen", "Oslo"]);
  },
  async query_raw_unsafe() {
    const query = `SELECT count(*) AS n, sum("length") AS s FROM "street" WHERE "name" < $1`;
    const [row] = await db.$queryRawUnsafe(query, "D");
    assert.deepStrictEqual([row.n, row.s.toFixed(2)], [3n, "8.75"]);
  },
  async query_raw_any() {
    const rows = await db.$queryRaw`SELECT "name" FROM "City" WHERE "id" = ANY (${[1, 2]}) ORDER BY "name"`;
    assert.deepStrictEqual(names(rows), ["Bergen", "Oslo"]);
  },
  async execute_raw() {
    assert.strictEqual(await db.$executeRaw`UPDATE "City" SET "height" = ${4.5} WHERE "id" IN (1, 2)`, 2);
    assert.strictEqual(await db.$executeRawUnsafe(`UPDATE "City" SET "height" = NULL WHERE "id" = $1`, 1), 1);
  },
  async raw_in_a_transaction() {
    const [count, rows] = await db.$transaction([
      db.$executeRaw`INSERT INTO "Line" ("name") VALUES ('6')`,
      db.$queryRaw`SELECT "name" FROM "Line" WHERE "name" = '6'`,
    ]);
    assert.deepStrictEqual([count, rows], [1, [{ name: "6" }]]);
  },
};

// Nothing is disconnected: Prisma waits for ever for the connection of a transaction whose COMMIT has failed.
run({ ...tools, ...writes, ...reads, ...types, ...transactions, ...errors, ...raw }, async () => {
  fs.rmSync(folder, { recursive: true });
});

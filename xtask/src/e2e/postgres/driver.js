// node-postgres: the simple and the extended protocol, a transaction, prepared statements, errors.
const assert = require("node:assert");
const { createRequire } = require("node:module");
const [port, folder] = process.argv.slice(2);
const { Client } = createRequire(`${folder}/`)("pg");

async function main() {
  const client = new Client({ host: "127.0.0.1", port: Number(port), user: "bezant", database: "bezant" });
  await client.connect();
  await client.query("create table node(id integer primary key, name text, flag boolean, data bytea, at timestamp)");
  await client.query("BEGIN");
  const values = ["x", true, Buffer.from([0, 255]), "2024-01-02 03:04:05"];
  const insert = "insert into node(name, flag, data, at) values ($1, $2::boolean, $3, $4) returning id";
  const inserted = await client.query(insert, values);
  assert.deepStrictEqual([inserted.rowCount, inserted.rows], [1, [{ id: 1 }]]);
  await client.query("COMMIT");
  const [row] = (await client.query("select * from node where name = $1", ["x"])).rows;
  assert.strictEqual(row.flag, true);
  assert.deepStrictEqual([...row.data], [0, 255]);
  assert.ok(row.at instanceof Date);
  assert.deepStrictEqual((await client.query("select count(*) from node")).rows, [{ count: "1" }]);
  for (let n = 0; n < 3; n += 1) {
    const prepared = { name: "by id", text: "select name from node where id = $1", values: [1] };
    assert.deepStrictEqual((await client.query(prepared)).rows, [{ name: "x" }]);
  }
  const both = await client.query("select 1 as a; select 2 as b");
  assert.deepStrictEqual(both.map((result) => result.rows), [[{ a: 1 }], [{ b: 2 }]]);
  await assert.rejects(client.query("select nosuch from node"), { code: "42703" });
  await client.end();
  console.log("ok");
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});

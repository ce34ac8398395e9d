// The same as drive.py for node-postgres: drive.js PORT FOLDER_OF_PACKAGES < STATEMENTS > OUTCOMES
const { createRequire } = require("node:module");
const readline = require("node:readline");
const [port, folder] = process.argv.slice(2);
const { Client } = createRequire(`${folder}/`)("pg");

// How long a statement may take, in milliseconds.
const ANSWER_MAX = 10_000;

function shown(value) {
  if (value === null) return null;
  if (Buffer.isBuffer(value)) return `bytes ${value.toString("hex")}`;
  if (value instanceof Date) return `date ${Number(value)}`;
  if (typeof value === "object") return `object ${JSON.stringify(value)}`;
  return `${typeof value} ${value}`;
}

// What a program would give for a type; the server has to find out the type of the rest.
function native([kind, text]) {
  if (text === null) return null;
  if (kind === "boolean") return text === "true";
  if (kind === "bytea") return Buffer.from(text.slice(2), "hex");
  if (["smallint", "integer", "real", "double precision"].includes(kind)) return Number(text);
  return text;
}

async function connect() {
  const client = new Client({ host: "127.0.0.1", port: Number(port), user: "postgres", database: "postgres" });
  client.on("error", () => {});
  await client.connect();
  await client.query("set timezone = 'UTC'");
  return client;
}

async function ask(client, { sql, parameters = [] }) {
  try {
    const query = { text: sql, values: parameters.map(native), rowMode: "array", query_timeout: ANSWER_MAX };
    const result = await client.query(query);
    const types = result.fields.map((field) => field.dataTypeID);
    return { rows: result.rows.map((row) => row.map(shown)), types, count: result.rowCount ?? 0 };
  } catch (error) {
    return { error: error.code ?? "lost", message: error.message };
  }
}

async function main() {
  let client = await connect();
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const outcome = await ask(client, JSON.parse(line));
    console.log(JSON.stringify(outcome));
    if (outcome.error === "lost") client = await connect();
  }
  process.exit(0);
}

main();

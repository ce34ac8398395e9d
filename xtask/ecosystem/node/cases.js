"use strict";
// Runs cases one after the other, and says of each `pass NAME` or `fail NAME: why`.

const assert = require("node:assert");

// Where the server is, and what is installed: `node CASE.js PORT FOLDER`.
const port = Number(process.argv[2]);
const packages = require("node:module").createRequire(`${process.argv[3]}/package.json`);
const to = { host: "127.0.0.1", port, user: "postgres", database: "postgres" };
const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
// What one case may take.
const CASE_MS_MAX = 60_000;

async function within(work) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error("not done in time")), CASE_MS_MAX);
  });
  try {
    await Promise.race([work(), late]);
  } finally {
    clearTimeout(timer);
  }
}

async function run(cases, end) {
  for (const [name, work] of Object.entries(cases)) {
    try {
      await within(work);
      console.log(`pass ${name}`);
    } catch (error) {
      const cause = error.cause ? ` (${error.cause.message})` : "";
      console.log(`fail ${name}: ${(error.message + cause).replaceAll("\n", " ")}`);
    }
  }
  await end();
  process.exit(0);
}

module.exports = { assert, packages, port, run, to, url };

// A server from npm in a new, empty folder that goes when it ends: its tools may be called.
//
//     node in_new_folder.mjs SERVER.js

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const server = process.argv[2];
const folder = mkdtempSync(join(tmpdir(), "known-bad-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

// What server-memory reads: one entity, with a property that its schema does not have.
const entity = { type: "entity", name: "Oslo", entityType: "city", observations: ["rain"], mayor: "unknown" };
process.env.MEMORY_FILE_PATH = join(folder, "memory.jsonl");
writeFileSync(process.env.MEMORY_FILE_PATH, `${JSON.stringify(entity)}\n`);

process.chdir(folder);
process.argv = [process.argv[0], server, folder];
await import(pathToFileURL(server).href);

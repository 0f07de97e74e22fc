// Prints what the built page weighs, and fails where it is too much.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

const MOST_BYTES = 250_000;
const FOLDER = new URL("../../static/", import.meta.url).pathname;

let whole = 0;
const names = readdirSync(FOLDER, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => join(entry.parentPath, entry.name))
  .sort();
for (const name of names) {
  const packed = gzipSync(readFileSync(name), { level: 9 }).length;
  whole += packed;
  console.log(`${(packed / 1000).toFixed(1).padStart(7)} kB  ${name.slice(FOLDER.length)}`);
}
console.log(`${(whole / 1000).toFixed(1).padStart(7)} kB  in all with gzip, of ${MOST_BYTES / 1000}`);
if (whole > MOST_BYTES) {
  console.error("The page is too large.");
  process.exit(1);
}

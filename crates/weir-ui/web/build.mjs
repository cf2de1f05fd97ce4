// Makes the files of the page from the sources: node build.mjs [FOLDER], by default into dist/, which is committed so
// that weir is built without Node. A test makes them again and compares.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const folder = process.argv[2] ?? "dist";
mkdirSync(folder, { recursive: true });
const page = { bundle: true, minify: true, target: "es2022", legalComments: "none" };
const preact = { jsx: "automatic", jsxImportSource: "preact" };
await build({ ...page, ...preact, entryPoints: ["src/main.tsx"], outfile: `${folder}/weir.js`, format: "esm" });
await build({ ...page, entryPoints: ["src/file.ts"], outfile: `${folder}/report.js`, format: "iife" });
await build({ ...page, entryPoints: ["src/page.css"], outfile: `${folder}/weir.css` });
writeFileSync(`${folder}/index.html`, readFileSync("src/index.html"));

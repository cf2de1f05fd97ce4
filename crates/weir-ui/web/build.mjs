// Makes dist/ from the sources. The first line of weir.js has their SHA-256, so that a test tells when dist/ is old.
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const report = "../../weir-report/templates/style.css";
const sources = [...readdirSync("src").sort().map((name) => `src/${name}`), "build.mjs", "package-lock.json", report];
const hash = createHash("sha256");
for (const source of sources) {
  hash.update(readFileSync(source));
}

await build({
  entryPoints: ["src/main.tsx"],
  outfile: "dist/weir.js",
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  banner: { js: `// sources: ${hash.digest("hex")}` },
  legalComments: "none",
});
await build({ entryPoints: ["src/page.css"], outfile: "dist/weir.css", bundle: true, minify: true });
writeFileSync("dist/index.html", readFileSync("src/index.html"));

import { defineConfig } from "vite";

import { staticFiles } from "./scripts/static_files.mjs";

export default defineConfig({
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  plugins: [staticFiles()],
  build: {
    outDir: "../static",
    emptyOutDir: true,
    target: "es2022",
    // An inlined file would be a data: URL, which the page's policy forbids for scripts.
    assetsInlineLimit: 0,
    license: { fileName: "licenses.md" },
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 1_000,
  },
});

import { defineConfig } from "vite";

export default defineConfig({
  root: "scenes",
  publicDir: false,
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: { outDir: "../built_scenes", emptyOutDir: true, target: "es2022", assetsInlineLimit: 0 },
});

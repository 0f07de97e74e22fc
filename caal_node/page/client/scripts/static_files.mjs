// A part of the build: the icons, the manifest, and the service worker with the list of files.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

import { pngIcon, svgIcon } from "./icons.mjs";

const WORKER = new URL("../src/service_worker.js", import.meta.url);

const MANIFEST = {
  id: "/",
  name: "caal",
  short_name: "caal",
  description: "Talk to your voice agent and see what it does.",
  start_url: "/",
  scope: "/",
  display: "standalone",
  background_color: "#f5f6f4",
  theme_color: "#0b6b5a",
  icons: [
    { src: "/icon.svg", sizes: "any", type: "image/svg+xml" },
    { src: "/icon-192.png", sizes: "192x192", type: "image/png" },
    { src: "/icon-512.png", sizes: "512x512", type: "image/png" },
    { src: "/icon-maskable.png", sizes: "512x512", type: "image/png", purpose: "maskable" },
  ],
};

export function staticFiles() {
  return {
    name: "static-files",
    apply: "build",
    generateBundle: {
      order: "post",
      handler(_, bundle) {
        const emit = (fileName, source) => {
          this.emitFile({ type: "asset", fileName, source });
        };
        emit("icon.svg", svgIcon());
        emit("icon-192.png", pngIcon(192, false));
        emit("icon-512.png", pngIcon(512, false));
        emit("icon-maskable.png", pngIcon(512, true));
        emit("manifest.webmanifest", JSON.stringify(MANIFEST, null, 2));
        const hashed = Object.keys(bundle).filter((name) => name.startsWith("assets/"));
        const files = ["/", ...hashed.sort().map((name) => `/${name}`), "/icon.svg"];
        files.push("/manifest.webmanifest");
        const page = bundle["index.html"]?.source ?? "";
        const version = createHash("sha256")
          .update(JSON.stringify(files))
          .update(page)
          .digest("hex")
          .slice(0, 12);
        const worker = readFileSync(WORKER, "utf8")
          .replace('"VERSION"', JSON.stringify(version))
          .replace("/* FILES */", files.map((file) => JSON.stringify(file)).join(", "));
        emit("sw.js", worker);
      },
    },
  };
}

// The page is built into bridge/web/static, which is committed and shipped: nobody but its authors needs node or npm.
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, statSync } from "node:fs";
import { defineConfig } from "vite";

/** The licences of what is in the bundle go with it, as both ask for. */
function licences() {
  return {
    name: "licences",
    generateBundle() {
      const texts = ["three", "uplot"].map((name) => {
        const { version } = JSON.parse(readFileSync(`node_modules/${name}/package.json`, "utf8"));
        return `${name} ${version}\n\n${readFileSync(`node_modules/${name}/LICENSE`, "utf8").trim()}\n`;
      });
      this.emitFile({ type: "asset", fileName: "licences.txt", source: texts.join(`\n${"-".repeat(72)}\n\n`) });
    },
  };
}

/** Of every file that the page is made from, by name and bytes: a test compares it with what is committed. */
function sources() {
  const below = (path) => (statSync(path).isDirectory() ? readdirSync(path).flatMap((name) => below(`${path}/${name}`)) : [path]);
  return {
    name: "sources",
    generateBundle() {
      const files = ["index.html", "package-lock.json", "package.json", "vite.config.js", "public", "src"].flatMap(below);
      const digest = createHash("sha256");
      for (const path of files.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))) {
        for (const part of [path, "\0", readFileSync(path), "\0"]) digest.update(part);
      }
      this.emitFile({ type: "asset", fileName: "sources.sha256", source: `${digest.digest("hex")}\n` });
    },
  };
}

export default defineConfig({
  base: "/",
  plugins: [licences(), sources()],
  build: {
    outDir: "../static",
    emptyOutDir: true,
    target: "es2022",
    sourcemap: false,
    modulePreload: { polyfill: false }, // the polyfill would be an inline script
    chunkSizeWarningLimit: 1200,
    assetsInlineLimit: 0,
    rollupOptions: {
      output: {
        manualChunks: (id) => (id.includes("node_modules/three/") ? "three" : undefined),
      },
    },
  },
  // `npm run dev` beside a running node: files from here, the stream from there.
  server: { proxy: { "/stream": { target: "http://127.0.0.1:8080", ws: true } } },
});

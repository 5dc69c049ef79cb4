// The page is built into bridge/web/static, which is committed and shipped: nobody but its authors needs node or npm.
import { readFileSync } from "node:fs";
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

export default defineConfig({
  base: "/",
  plugins: [licences()],
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

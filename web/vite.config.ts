import { defineConfig } from 'vite';

export default defineConfig({
  esbuild: { jsx: 'automatic', jsxImportSource: 'preact' },
  build: {
    target: 'es2022',
    // The server's Content-Security-Policy lets in files, and no data in their place.
    assetsInlineLimit: 0,
    rollupOptions: {
      output: { banner: '/*! Sluice: Apache-2.0. Preact: MIT, (c) Jason Miller. uPlot: MIT, (c) Leon Sorokin. diff: BSD-3-Clause, (c) Kevin Decker. */' },
    },
    modulePreload: { polyfill: false },
  },
});

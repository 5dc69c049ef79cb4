// How soil looks: by its slope and height, whether it was cut or heaped, and how long ago.

import * as THREE from "three";

const SIDE = 256;

/** How large the picture of the grain is on the ground [m]. */
export const PATCH = 5;

let texture = null;
let mottles = null;

/** Grain that repeats: values about white that multiply the colour, in clumps of several sizes. */
export function grain() {
  if (texture) return texture;
  const data = new Uint8Array(4 * SIDE * SIDE);
  const layers = [5, 17, 47, 113].map((cells, k) => lattice(cells, 17 * k + 5));
  for (let k = 0; k < SIDE * SIDE; k++) {
    const [x, y] = [(k % SIDE) / SIDE, Math.floor(k / SIDE) / SIDE];
    const noise = 0.2 * layers[0](x, y) + 0.3 * layers[1](x, y) + 0.3 * layers[2](x, y) + 0.2 * layers[3](x, y);
    const value = 255 * (0.78 + 0.42 * (noise - 0.25));
    data.set([value, value, value, 255].map((c) => Math.max(0, Math.min(255, c))), 4 * k);
  }
  texture = new THREE.DataTexture(data, SIDE, SIDE);
  texture.wrapS = texture.wrapT = THREE.RepeatWrapping;
  texture.magFilter = THREE.LinearFilter;
  texture.minFilter = THREE.LinearMipmapLinearFilter;
  texture.generateMipmaps = true;
  texture.colorSpace = THREE.SRGBColorSpace;
  texture.needsUpdate = true;
  return texture;
}

/** Random values on a grid of `cells` that closes in itself, smooth in between: the same in every page. */
function lattice(cells, seed) {
  let state = seed;
  const random = () => {
    state = (state + 0x6d2b79f5) | 0; // mulberry32
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
  const values = Float32Array.from({ length: cells * cells }, random);
  const smooth = (x) => x * x * (3 - 2 * x);
  return (x, y) => {
    const [u, v] = [x * cells, y * cells];
    const [i, j] = [Math.floor(u), Math.floor(v)];
    const [a, b] = [smooth(u - i), smooth(v - j)];
    const at = (p, q) => values[(p % cells) * cells + (q % cells)];
    return (1 - a) * ((1 - b) * at(i, j) + b * at(i, j + 1)) + a * ((1 - b) * at(i + 1, j) + b * at(i + 1, j + 1));
  };
}

/** Light and dark spots some metres wide, -1 to 1, anywhere on the ground; for who has no room for grain. */
export function mottle(x, y) {
  mottles ??= [lattice(64, 3), lattice(64, 11)];
  const at = (layer, size) => layer((((x / size) % 64) + 64) % 64 / 64, (((y / size) % 64) + 64) % 64 / 64);
  return at(mottles[0], 2.7) + at(mottles[1], 0.7) - 1;
}

const linear = (c) => c * c * (0.3 * c + 0.7); // near enough to sRGB's curve

/**
 * The colour of one sample into `out[at..]`: `upright` is the normal's z, `change` the height above what was there at
 * first [m], `wet` 1 just after it moved and 0 when dry, `shut` the share of the sky that is hidden from it.
 */
export function tint(out, at, [r, g, b], upright, change, wet, height, shut) {
  const steep = Math.min(1, Math.max(0, (0.96 - upright) * 2.2));
  const cut = Math.min(1, Math.max(0, -change * 4));
  const heap = Math.min(1, Math.max(0, change * 4));
  const shade = (1 - 0.22 * steep) * (1 - 0.22 * cut + 0.08 * heap) * (1 - 0.2 * wet) * (1 - 0.75 * shut) * (1 + 0.05 * Math.max(-2, Math.min(2, height)));
  out[at] = linear(r * shade * (1 + 0.05 * cut));
  out[at + 1] = linear(g * shade * (1 - 0.09 * cut));
  out[at + 2] = linear(b * shade * (1 - 0.2 * cut));
}

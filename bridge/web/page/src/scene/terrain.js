// Ground that changes: one geometry per grid, its vertices sorted tile by tile, so that a changed tile is one stretch
// of each buffer and nothing else is sent to the graphics card. Normals and colours are made anew for changed tiles
// and the samples next to them.

import * as THREE from "three";
import { decodeTerrain, metres } from "../link/decode.js";
import { PATCH, grain, mottle, tint } from "./soil.js";

const FRESH = 25; // [s] that soil looks moist after it was moved
const NEAR = [3, 8]; // samples away that the sky is looked for
const STIRRED = 0.002; // [m] that a sample must move to look moist
const SPOTS = 0.07; // how much lighter or darker the spots of the ground are
const VERGE = [0.6, 3.2]; // [m] from the rim between which what grows around the grid thins out
const BARE = 0.004; // [m] of soil that is seen on a floor

const WAYS = [1, 0, 1, 1, 0, 1, -1, 1, -1, 0, -1, -1, 0, -1, 1, -1]; // the eight ways to look

const FEWER = 2; // times fewer samples along each side are drawn of ground that nobody has touched, where triangles are dear

class Grid {
  #fine = new Set(); // tiles that were touched
  #laid = 0; // how many of them the triangles are those of
  #dirty = new Set(); // tiles with samples that moved
  #moist = new Set(); // tiles whose colour is still drying

  /** `rim`: the colour of what grows around it; `floor`: that of what it lies on, where there is no soil. */
  constructor({ name, nx, ny, corner, spacing, tile = 16, colour, rim, floor, body = "" }, stride) {
    Object.assign(this, { name, nx, ny, corner, spacing, tile, colour, rim, floor, body, stride });
    this.tilesX = Math.ceil(nx / tile);
    this.tilesY = Math.ceil(ny / tile);
    this.units = new Int32Array(nx * ny); // heights above the corner as on the wire, x slow, y fast: exact for ever
    this.heights = new Float32Array(nx * ny); // [m] the same
    this.first = null; // heights as they came first: what was there before anybody dug
    this.moved = new Float32Array(nx * ny).fill(-1e9); // [s] when a sample moved last
    this.#sow();
    this.start = new Int32Array(this.tilesX * this.tilesY + 1); // first vertex of each tile
    for (let t = 0; t + 1 < this.start.length; t++) {
      this.start[t + 1] = this.start[t] + this.#width(t) * this.#depth(t);
      this.#dirty.add(t); // ground that is level is never sent
    }
    this.mesh = this.#build();
  }

  /** What is always the same about the colour of a sample: spots, and how much grows there. */
  #sow() {
    const { nx, ny, corner, spacing } = this;
    this.spots = new Float32Array(nx * ny);
    this.grown = new Float32Array(this.rim ? nx * ny : 0);
    for (let i = 0, k = 0; i < nx; i++) {
      for (let j = 0; j < ny; j++, k++) {
        this.spots[k] = mottle(corner[0] + i * spacing[0], corner[1] + j * spacing[1]);
        if (!this.rim) continue;
        const inside = Math.min(Math.min(i, nx - 1 - i) * spacing[0], Math.min(j, ny - 1 - j) * spacing[1]);
        const far = (inside - VERGE[0]) / (VERGE[1] - VERGE[0]) + 0.55 * this.spots[k] * Math.min(1, inside);
        this.grown[k] = 1 - Math.min(1, Math.max(0, far));
      }
    }
  }

  /** The colour of a sample before light and moisture, into `out`. */
  #paint(out, k, change) {
    const soil = this.floor && this.heights[k] < BARE ? this.floor : this.colour;
    const grown = this.rim ? this.grown[k] * (1 - Math.min(1, 20 * Math.abs(change))) : 0;
    const spot = 1 + (soil === this.floor ? 0 : SPOTS * this.spots[k]);
    for (let c = 0; c < 3; c++) out[c] = spot * (soil[c] + (grown ? grown * (this.rim[c] - soil[c]) : 0));
    return out;
  }

  #width(t) {
    return Math.min(this.tile, this.nx - Math.floor(t / this.tilesY) * this.tile);
  }

  #depth(t) {
    return Math.min(this.tile, this.ny - (t % this.tilesY) * this.tile);
  }

  /** The vertex of sample (i, j). */
  #vertex(i, j) {
    const t = Math.floor(i / this.tile) * this.tilesY + Math.floor(j / this.tile);
    return this.start[t] + (i % this.tile) * this.#depth(t) + (j % this.tile);
  }

  #build() {
    const { nx, ny, corner, spacing } = this;
    const count = nx * ny;
    const [position, normal, colour, uv] = [3, 3, 3, 2].map((n) => new THREE.BufferAttribute(new Float32Array(n * count), n));
    for (let i = 0; i < nx; i++) {
      for (let j = 0; j < ny; j++) {
        const v = this.#vertex(i, j);
        position.setXYZ(v, corner[0] + i * spacing[0], corner[1] + j * spacing[1], corner[2]);
        normal.setXYZ(v, 0, 0, 1);
        uv.setXY(v, (corner[0] + i * spacing[0]) / PATCH, (corner[1] + j * spacing[1]) / PATCH);
      }
    }
    const most = 6 * this.tilesX * this.tilesY * Math.ceil(this.tile / this.stride) ** 2;
    for (const attribute of [position, normal, colour]) attribute.setUsage(THREE.DynamicDrawUsage);
    const geometry = new THREE.BufferGeometry();
    geometry.setAttribute("position", position);
    geometry.setAttribute("normal", normal);
    geometry.setAttribute("color", colour);
    geometry.setAttribute("uv", uv);
    geometry.setIndex(new THREE.BufferAttribute(new Uint32Array(most), 1));
    this.#lay(geometry);
    geometry.boundingSphere = new THREE.Sphere(
      new THREE.Vector3(corner[0] + 0.5 * nx * spacing[0], corner[1] + 0.5 * ny * spacing[1], corner[2]),
      Math.hypot(nx * spacing[0], ny * spacing[1]),
    );
    const material = new THREE.MeshLambertMaterial({ vertexColors: true, map: this.stride > 1 ? null : grain() });
    // One that is laid on other ground has its very surface where there is no soil: there the other is seen.
    if (this.body) Object.assign(material, { polygonOffset: true, polygonOffsetFactor: 1, polygonOffsetUnits: 4 });
    const mesh = new THREE.Mesh(geometry, material);
    mesh.receiveShadow = true;
    mesh.userData.ground = this.name;
    return mesh;
  }

  /**
   * The triangles: each cell is two, cut along the diagonal that the simulation cuts it along. With a stride cells are
   * larger, and larger still in tiles that nobody has touched; the last ones reach the rim all the same.
   */
  #lay(geometry) {
    const { array } = geometry.index;
    const lines = (from, last, stride) => {
      const found = [];
      for (let at = from; at < last; at += stride) found.push(at);
      return [...found, last];
    };
    let k = 0;
    for (let t = 0; t < this.tilesX * this.tilesY; t++) {
      const stride = this.stride === 1 || this.#fine.has(t) ? this.stride : FEWER * this.stride;
      const [i0, j0] = [Math.floor(t / this.tilesY) * this.tile, (t % this.tilesY) * this.tile];
      const rows = lines(i0, Math.min(i0 + this.tile, this.nx - 1), stride);
      const columns = lines(j0, Math.min(j0 + this.tile, this.ny - 1), stride);
      for (let r = 0; r < rows.length - 1; r++) {
        for (let c = 0; c < columns.length - 1; c++) {
          const [i, e, j, n] = [rows[r], rows[r + 1], columns[c], columns[c + 1]];
          const [a, b, d, f] = [this.#vertex(i, j), this.#vertex(e, j), this.#vertex(e, n), this.#vertex(i, n)];
          for (const v of [a, b, d, a, d, f]) array[k++] = v;
        }
      }
    }
    this.#laid = this.#fine.size;
    geometry.setDrawRange(0, k);
    geometry.index.needsUpdate = true;
  }

  /** A rectangle of the stream: heights or differences to what is here. */
  set(i0, j0, nx, ny, samples, relative, now) {
    const { units, heights, tile, tilesY } = this;
    for (let a = 0, k = 0; a < nx; a++) {
      let at = (i0 + a) * this.ny + j0;
      for (let b = 0; b < ny; b++, at++, k++) {
        const before = heights[at];
        units[at] = relative ? units[at] + samples[k] : samples[k];
        heights[at] = metres(units[at]);
        if (this.first && Math.abs(heights[at] - before) > STIRRED) this.moved[at] = now;
      }
    }
    for (let ti = Math.floor(i0 / tile); ti * tile < i0 + nx; ti++) {
      for (let tj = Math.floor(j0 / tile); tj * tile < j0 + ny; tj++) {
        this.#dirty.add(ti * tilesY + tj);
        if (this.first && this.stride > 1) this.#fine.add(ti * tilesY + tj);
      }
    }
  }

  /** All of it has come: what changes from now on was moved. */
  settle() {
    this.first ??= this.heights.slice();
  }

  /** Bring what has changed to the picture. */
  update(now, dry) {
    const touched = new Set(dry ? this.#moist : []);
    if (this.#fine.size > this.#laid) this.#lay(this.mesh.geometry);
    for (const t of this.#dirty) {
      this.#moist.add(t);
      this.#lift(t);
      // Normals of the samples next door lean on these.
      const [ti, tj] = [Math.floor(t / this.tilesY), t % this.tilesY];
      for (let a = Math.max(0, ti - 1); a <= Math.min(this.tilesX - 1, ti + 1); a++) {
        for (let b = Math.max(0, tj - 1); b <= Math.min(this.tilesY - 1, tj + 1); b++) touched.add(a * this.tilesY + b);
      }
    }
    for (const t of touched) if (!this.#shade(t, now)) this.#moist.delete(t);
    this.#dirty.clear();
  }

  #upload(name, t) {
    const attribute = this.mesh.geometry.attributes[name];
    attribute.addUpdateRange(3 * this.start[t], 3 * (this.start[t + 1] - this.start[t]));
    attribute.needsUpdate = true;
  }

  #lift(t) {
    const { array } = this.mesh.geometry.attributes.position;
    this.#each(t, (k, v) => (array[3 * v + 2] = this.corner[2] + this.heights[k]));
    this.#upload("position", t);
  }

  /** Normals and colours of a tile; whether some of it is still moist. */
  #shade(t, now) {
    const { heights, ny, nx, spacing, first } = this;
    const { normal, color } = this.mesh.geometry.attributes;
    const paint = [0, 0, 0];
    let moist = false;
    this.#each(t, (k, v, i, j) => {
      const [w, e] = [i > 0 ? ny : 0, i < nx - 1 ? ny : 0];
      const [s, n] = [j > 0 ? 1 : 0, j < ny - 1 ? 1 : 0];
      const x = (heights[k - w] - heights[k + e]) / (spacing[0] * ((w + e) / ny));
      const y = (heights[k - s] - heights[k + n]) / (spacing[1] * (s + n));
      const long = 1 / Math.sqrt(x * x + y * y + 1);
      normal.setXYZ(v, x * long, y * long, long);
      const wet = Math.max(0, 1 - (now - this.moved[k]) / FRESH);
      moist ||= wet > 0;
      const change = first && !this.body ? heights[k] - first[k] : 0;
      tint(color.array, 3 * v, this.#paint(paint, k, change), long, change, wet, heights[k], this.#shut(i, j));
    });
    this.#upload("normal", t);
    this.#upload("color", t);
    return moist;
  }

  /** How much of the sky is hidden from a sample by what stands around it, 0 to 1: a trench is dark inside. */
  #shut(i, j) {
    const { heights, nx, ny, spacing } = this;
    const here = heights[i * ny + j];
    let sum = 0;
    for (let way = 0; way < 8; way++) {
      const [x, y] = [WAYS[2 * way], WAYS[2 * way + 1]];
      let steepest = 0;
      for (const far of NEAR) {
        const [a, b] = [i + far * x, j + far * y];
        if (a < 0 || b < 0 || a >= nx || b >= ny) continue;
        steepest = Math.max(steepest, (heights[a * ny + b] - here) / (far * spacing[0] * (x && y ? Math.SQRT2 : 1)));
      }
      sum += Math.min(1, steepest);
    }
    return sum / 8;
  }

  /** Calls `visit(sample, vertex, i, j)` for each sample of a tile. */
  #each(t, visit) {
    const [i0, j0] = [Math.floor(t / this.tilesY) * this.tile, (t % this.tilesY) * this.tile];
    const [width, depth] = [this.#width(t), this.#depth(t)];
    let v = this.start[t];
    for (let i = i0; i < i0 + width; i++) {
      for (let j = j0; j < j0 + depth; j++) visit(i * this.ny + j, v++, i, j);
    }
  }

  /** Lie where a body or a prop is; nowhere as long as nobody has said where that is. */
  ride(group) {
    this.mesh.visible = group?.visible ?? false;
    if (group) this.mesh.position.copy(group.position);
  }

  /** Sum of all heights above the corner [m]. */
  sum() {
    return metres(this.units.reduce((sum, h) => sum + h, 0));
  }

  /** Mean height of the rim [m], where the land around begins. */
  edge() {
    const { heights, nx, ny } = this;
    let [sum, count] = [0, 0];
    for (let i = 0; i < nx; i++) [sum, count] = [sum + heights[i * ny] + heights[i * ny + ny - 1], count + 2];
    for (let j = 0; j < ny; j++) [sum, count] = [sum + heights[j] + heights[(nx - 1) * ny + j], count + 2];
    return this.corner[2] + sum / count;
  }

  dispose() {
    this.mesh.removeFromParent();
    this.mesh.geometry.dispose();
    this.mesh.material.dispose();
  }
}

/** All grids of a node. */
export class Terrain {
  #dried = 0;

  /** `stride`: of how many samples along each side one is drawn; with more than one, without grain. */
  constructor(scene, bodies, stride) {
    this.scene = scene;
    this.bodies = bodies;
    this.stride = stride;
    this.grids = [];
    this.complete = false; // whether every grid has come in full
  }

  rebuild(grids) {
    for (const grid of this.grids) grid.dispose();
    this.grids = grids.map((given) => new Grid(given, this.stride));
    for (const { mesh } of this.grids) this.scene.add(mesh);
    this.complete = false;
  }

  take(buffer) {
    const grid = this.grids[new Uint8Array(buffer, 1, 1)[0]];
    const now = performance.now() / 1e3;
    if (grid) decodeTerrain(buffer, (...tile) => grid.set(...tile, now));
  }

  update() {
    const now = performance.now() / 1e3;
    const dry = now - this.#dried > 1;
    if (dry) this.#dried = now;
    for (const grid of this.grids) {
      grid.update(now, dry);
      if (grid.body) grid.ride(this.bodies.byName.get(grid.body));
    }
  }

  /** The first state has come, and before it every grid in full. */
  settle() {
    if (this.complete) return;
    for (const grid of this.grids) grid.settle();
    this.complete = true;
  }

  sum(name) {
    return this.grids.find((grid) => grid.name === name)?.sum();
  }

  /** All heights above the corner [0.1 mm], x slow, y fast, as base64 of little-endian i32. */
  units(name) {
    const bytes = new Uint8Array(this.grids.find((grid) => grid.name === name)?.units.buffer ?? []);
    let text = "";
    for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
    return btoa(text);
  }
}

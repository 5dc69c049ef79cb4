// The binary frames of the stream, little endian; arrays are aligned and looked at where they lie.

export const STATE = 1;
export const TERRAIN = 2;
export const ARROWS = 3;
export const PROPS = 4;

export const STATES = ["configured", "armed", "running", "tripped", "cleared", "stopped"];
export const FLAGS = { paused: 16, stale: 32, forced: 128, fault: 256, clamped: 512 };

const HEADER = 56; // bytes of a STATE before its poses
const UNIT = 1e-4; // [m] of heights on the wire

/**
 * One state: where every body is (`poses`, 7 floats each: p, q as w x y z), now and then all signals (`latest`), and
 * all samples of the watched signals since the frame before: `samples` has `count` rows of a time [s] relative to `t`
 * and one value for each.
 */
export function decodeState(buffer, bodies) {
  const view = new DataView(buffer);
  const watched = view.getUint16(2, true);
  const known = view.getUint16(48, true);
  const count = view.getUint32(52, true);
  const after = HEADER + 28 * bodies;
  return {
    state: view.getUint8(1),
    frame: view.getUint32(4, true),
    tick: Number(view.getBigInt64(8, true)),
    t: view.getFloat64(16, true),
    made: view.getFloat64(32, true) - view.getFloat64(24, true), // when its tick woke, by the server's clock [s]
    wake: view.getFloat32(40, true),
    step: view.getFloat32(44, true),
    flags: view.getUint16(50, true),
    poses: new Float32Array(buffer, HEADER, 7 * bodies),
    latest: known ? new Float32Array(buffer, after, known) : null,
    watched,
    count,
    samples: new Float32Array(buffer, after + 4 * known, count * (1 + watched)),
  };
}

const SAMPLES = [Int32Array, Int16Array, Int8Array];

/**
 * Changed ground: calls `set(i, j, nx, ny, samples, relative)` for each rectangle of samples from (i, j) on, x slow
 * and y fast. Samples are whole numbers of 0.1 mm, heights or differences to those that the page has.
 */
export function decodeTerrain(buffer, set) {
  const view = new DataView(buffer);
  const patches = view.getUint16(2, true);
  let at = 8;
  for (let n = 0; n < patches; n++) {
    const [i, j] = [view.getUint16(at, true), view.getUint16(at + 2, true)];
    const [mode, nx, ny] = [view.getUint8(at + 4), view.getUint8(at + 5), view.getUint8(at + 6)];
    const samples = new SAMPLES[mode](buffer, at + 8, nx * ny);
    set(i, j, nx, ny, samples, mode !== 0);
    at += 8 + 4 * Math.ceil(samples.byteLength / 4);
  }
}

/** Heights [m] of whole numbers of the wire. */
export const metres = (units) => units * UNIT;

/** Forces at points: `count` times at x y z, force x y z. */
export function decodeArrows(buffer) {
  const count = new DataView(buffer).getUint16(2, true);
  return { count, numbers: new Float32Array(buffer, 4, 6 * count) };
}

/** Calls `set(index, pose)` for each prop that has moved. */
export function decodeProps(buffer, set) {
  const view = new DataView(buffer);
  const count = view.getUint16(2, true);
  for (let n = 0; n < count; n++) {
    const at = 4 + 32 * n;
    set(view.getUint16(at, true), new Float32Array(buffer, at + 4, 7));
  }
}

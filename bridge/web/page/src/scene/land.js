// The land around: flat ground to the horizon with a hole where the grid that changes lies, and a metre grid on it
// for scale. Without a grid it is the plane of the scene.

import * as THREE from "three";
import { PATCH, grain } from "./soil.js";

const EVERY = 10; // [m] between the lines on ground that is not level

const FAR = 400; // [m]
const TUCKED = 0.12; // [m] that the land reaches under the rim of the grid
const PLAIN = [0.5, 0.47, 0.41];

function lines(size, step, colour, opacity) {
  const grid = new THREE.GridHelper(size, Math.round(size / step), colour, colour);
  grid.rotateX(Math.PI / 2);
  grid.material.transparent = true;
  grid.material.opacity = opacity;
  grid.material.depthWrite = false;
  grid.raycast = () => {};
  return grid;
}

/** Lines at whole multiples of EVERY on a grid as it lies now; over what is dug later they stay where they are. */
function draped({ nx, ny, corner, spacing, heights }) {
  const points = [];
  const put = (i, j) => points.push(corner[0] + i * spacing[0], corner[1] + j * spacing[1], corner[2] + heights[i * ny + j] + 0.04);
  const at = (k) => Array.from({ length: 1000 }, (_, n) => Math.round(((Math.ceil(corner[k] / EVERY) + n) * EVERY - corner[k]) / spacing[k]));
  for (const i of at(0).filter((sample) => sample < nx)) for (let j = 0; j + 1 < ny; j++) [put(i, j), put(i, j + 1)];
  for (const j of at(1).filter((sample) => sample < ny)) for (let i = 0; i + 1 < nx; i++) [put(i, j), put(i + 1, j)];
  const geometry = new THREE.BufferGeometry().setAttribute("position", new THREE.Float32BufferAttribute(points, 3));
  const made = new THREE.LineSegments(geometry, new THREE.LineBasicMaterial({ color: 0x22282c, transparent: true, opacity: 0.3, depthWrite: false }));
  made.raycast = () => {};
  return made;
}

const LIT = 0.9; // of the light that level ground gives back: what a material without lights is given

export class Land {
  /** `plain`: level ground is lit evenly, so it needs neither lights nor grain. */
  constructor(scene, plain = false) {
    this.plain = plain;
    this.group = new THREE.Group();
    scene.add(this.group);
    this.rules = new THREE.Group(); // the lines, which a reader may not want
    this.shown = true;
  }

  /** Lay the land out anew: around the largest grid, or as the planes of the scene say. */
  rebuild(grids, planes) {
    this.group.traverse((object) => {
      object.geometry?.dispose();
      object.material?.dispose();
    });
    this.group.clear();
    const area = ({ nx, ny, spacing }) => nx * ny * spacing[0] * spacing[1];
    const hole = grids.filter(({ body }) => !body).sort((a, b) => area(b) - area(a))[0];
    const flat = planes.find(({ q = [1, 0, 0, 0] }) => Math.abs(q[0]) > 0.999);
    const z = hole ? hole.edge() - 0.015 : (flat?.p?.[2] ?? 0);
    const ground = new THREE.Mesh(this.#surface(hole), this.#material(hole?.rim ?? hole?.colour ?? flat?.colour ?? PLAIN));
    ground.position.z = z;
    ground.receiveShadow = true;
    ground.userData.ground = "land";
    this.group.add(ground);
    if (hole) this.group.add(this.#skirt(hole, z));
    this.rules = new THREE.Group();
    if (hole) this.rules.add(draped(hole));
    else this.rules.add(lines(200, 10, 0x22282c, 0.22), lines(40, 1, 0x22282c, 0.14));
    this.rules.position.z = hole ? 0 : z + 0.03;
    this.rules.visible = this.shown;
    this.group.add(this.rules);
  }

  show(on) {
    this.shown = on;
    this.rules.visible = on;
  }

  #material(colour) {
    const color = new THREE.Color().setRGB(...colour, THREE.SRGBColorSpace);
    if (this.plain) return new THREE.MeshBasicMaterial({ color: color.multiplyScalar(LIT), side: THREE.DoubleSide });
    return new THREE.MeshLambertMaterial({ color, map: grain(), side: THREE.DoubleSide });
  }

  #surface(hole) {
    const outline = new THREE.Shape().absarc(0, 0, FAR, 0, 2 * Math.PI);
    if (hole) {
      // A little smaller than the grid: two edges that only touch let the sky through.
      const [x0, y0] = [hole.corner[0] + TUCKED, hole.corner[1] + TUCKED];
      const [x1, y1] = [x0 + (hole.nx - 1) * hole.spacing[0] - 2 * TUCKED, y0 + (hole.ny - 1) * hole.spacing[1] - 2 * TUCKED];
      const corners = [[x0, y0], [x0, y1], [x1, y1], [x1, y0]].map(([x, y]) => new THREE.Vector2(x, y));
      outline.holes.push(new THREE.Path(corners));
    }
    const geometry = new THREE.ShapeGeometry(outline, 48);
    const { position, uv } = geometry.attributes;
    for (let v = 0; v < position.count; v++) uv.setXY(v, position.getX(v) / PATCH, position.getY(v) / PATCH);
    return geometry;
  }

  /** From the rim of the grid down (or up) to the land, so that no sky shows through. */
  #skirt({ nx, ny, corner, spacing, heights, colour, rim: verge }, z) {
    const rim = [];
    for (let i = 0; i < nx; i++) rim.push([i, 0]);
    for (let j = 1; j < ny; j++) rim.push([nx - 1, j]);
    for (let i = nx - 2; i >= 0; i--) rim.push([i, ny - 1]);
    for (let j = ny - 2; j >= 0; j--) rim.push([0, j]);
    const points = [];
    const index = [];
    rim.forEach(([i, j], k) => {
      const [x, y] = [corner[0] + i * spacing[0], corner[1] + j * spacing[1]];
      points.push(x, y, corner[2] + heights[i * ny + j], x, y, z - 0.3);
      if (k) index.push(2 * k - 2, 2 * k - 1, 2 * k, 2 * k, 2 * k - 1, 2 * k + 1);
    });
    const geometry = new THREE.BufferGeometry();
    geometry.setAttribute("position", new THREE.Float32BufferAttribute(points, 3));
    geometry.setIndex(index);
    geometry.computeVertexNormals();
    const color = new THREE.Color().setRGB(...(verge ?? colour), THREE.SRGBColorSpace).multiplyScalar(0.8);
    return new THREE.Mesh(geometry, new THREE.MeshLambertMaterial({ color, side: THREE.DoubleSide }));
  }
}

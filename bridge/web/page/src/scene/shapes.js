// From an entry of the scene to a mesh in its body's frame. Axes as in the simulation: cylinders, capsules and cones
// along z, rings and links in the plane z = 0; three.js builds round things along y, so those are turned once.

import * as THREE from "three";
import { RoundedBoxGeometry } from "three/examples/jsm/geometries/RoundedBoxGeometry.js";
import { mergeGeometries } from "three/examples/jsm/utils/BufferGeometryUtils.js";
import { PLAIN } from "./materials.js";
import { mottle } from "./soil.js";

const upright = (geometry) => geometry.rotateX(Math.PI / 2);

/** A chain link: a tube along two straight parts of `length` and two half rings of radius `bend`. */
function linkGeometry(length, bend, wire) {
  const path = new THREE.CurvePath();
  const half = 0.5 * length;
  const arc = (x, from) => {
    const points = Array.from({ length: 13 }, (_, k) => {
      const angle = from + (k / 12) * Math.PI;
      return new THREE.Vector3(x + bend * Math.cos(angle), bend * Math.sin(angle), 0);
    });
    return new THREE.CatmullRomCurve3(points);
  };
  const line = (x0, x1, y) => new THREE.LineCurve3(new THREE.Vector3(x0, y, 0), new THREE.Vector3(x1, y, 0));
  path.add(arc(half, -Math.PI / 2));
  path.add(line(half, -half, bend));
  path.add(arc(-half, Math.PI / 2));
  path.add(line(-half, half, -bend));
  return new THREE.TubeGeometry(path, 48, wire, 10, true);
}

const GEOMETRIES = {
  box: (x, y, z) => new RoundedBoxGeometry(x, y, z, 2, Math.min(0.05, 0.18 * Math.min(x, y, z))),
  sphere: (r) => new THREE.SphereGeometry(r, 28, 18),
  capsule: (r, length) => upright(new THREE.CapsuleGeometry(r, length, 8, 20)),
  cylinder: (r, height) => upright(new THREE.CylinderGeometry(r, r, height, 36)),
  cone: (r, height) => upright(new THREE.ConeGeometry(r, height, 32)),
  torus: (ring, wire) => new THREE.TorusGeometry(ring, wire, 14, 40),
  link: linkGeometry,
};

/** The same with few triangles. */
const PLAINLY = {
  ...GEOMETRIES,
  box: (x, y, z) => new THREE.BoxGeometry(x, y, z),
  sphere: (r) => new THREE.SphereGeometry(r, 16, 10),
  capsule: (r, length) => upright(new THREE.CapsuleGeometry(r, length, 4, 12)),
  cylinder: (r, height) => upright(new THREE.CylinderGeometry(r, r, height, 18)),
  cone: (r, height) => upright(new THREE.ConeGeometry(r, height, 14)),
};

/** The geometry of a surface; vertices are kept apart where its edges are sharp, so that those look sharp. */
export function surfaceGeometry({ vertices, faces }) {
  const geometry = new THREE.BufferGeometry();
  geometry.setAttribute("position", new THREE.BufferAttribute(new Float32Array(vertices), 3));
  geometry.setIndex(Array.from(faces));
  return creased(geometry, 0.6);
}

/** Normals averaged over the faces around a vertex that lie within `crease` [rad] of each other. */
function creased(indexed, crease) {
  const geometry = indexed.toNonIndexed();
  const at = geometry.attributes.position;
  const faces = at.count / 3;
  const normals = Array.from({ length: faces }, (_, f) => {
    const [a, b, c] = [0, 1, 2].map((k) => new THREE.Vector3().fromBufferAttribute(at, 3 * f + k));
    return b.sub(a).cross(c.sub(a)); // as long as twice the area: larger faces weigh more
  });
  const around = new Map();
  const key = (v) => `${at.getX(v).toFixed(5)} ${at.getY(v).toFixed(5)} ${at.getZ(v).toFixed(5)}`;
  for (let v = 0; v < at.count; v++) {
    const k = key(v);
    if (!around.has(k)) around.set(k, []);
    around.get(k).push(Math.floor(v / 3));
  }
  const out = new Float32Array(3 * at.count);
  const sum = new THREE.Vector3();
  for (let v = 0; v < at.count; v++) {
    const own = normals[Math.floor(v / 3)];
    sum.set(0, 0, 0);
    for (const f of around.get(key(v))) if (normals[f].angleTo(own) < crease) sum.add(normals[f]);
    sum.normalize().toArray(out, 3 * v);
  }
  geometry.setAttribute("normal", new THREE.BufferAttribute(out, 3));
  indexed.dispose();
  return geometry;
}

/** The geometry of an entry in its own frame; undefined for kinds that are no solid shape. */
function geometryOf(entry, surfaces, plain) {
  if (entry.kind === "mesh") return surfaces.get(entry.mesh);
  return (plain ? PLAINLY : GEOMETRIES)[entry.kind]?.(...entry.size);
}

function shadowed(mesh) {
  const clear = mesh.material.transparent;
  mesh.castShadow = !clear;
  mesh.receiveShadow = !clear;
  return mesh;
}

/** The mesh of an entry, placed in its body's frame; null for kinds that are no solid shape. */
export function meshOf(entry, materials, surfaces, plain) {
  const geometry = geometryOf(entry, surfaces, plain);
  if (!geometry) return null;
  const mesh = new THREE.Mesh(geometry, materials.of(entry));
  place(mesh, entry);
  return shadowed(mesh);
}

/** One mesh of many entries, in their body's frame; null if none of them is a solid shape. */
export function mergedMesh(entries, material, surfaces, plain) {
  const frame = new THREE.Object3D();
  const parts = [];
  for (const entry of entries) {
    const given = geometryOf(entry, surfaces, plain);
    if (!given) continue;
    place(frame, entry);
    frame.updateMatrix();
    const part = new THREE.BufferGeometry(); // of all that a shape may have, what they all have
    const { position, normal } = given.attributes;
    part.setAttribute("position", position.clone());
    part.setAttribute("normal", normal.clone());
    part.setAttribute("color", new THREE.BufferAttribute(colours(entry.colour ?? PLAIN, position.count), 3));
    part.setIndex(given.index ? given.index.clone() : [...Array(position.count).keys()]);
    parts.push(part.applyMatrix4(frame.matrix));
    if (entry.finish === "grass") meadow(part.attributes);
    if (entry.kind !== "mesh") given.dispose(); // surfaces are shared
  }
  return parts.length ? shadowed(new THREE.Mesh(mergeGeometries(parts), material)) : null;
}

/** The same colour for every vertex. */
function colours(colour, count) {
  const { r, g, b } = new THREE.Color().setRGB(...colour, THREE.SRGBColorSpace);
  const out = new Float32Array(3 * count);
  for (let k = 0; k < out.length; k += 3) out.set([r, g, b], k);
  return out;
}

/** Lighter and darker, yellower and greener, in spots of several sizes: land is never of one colour. */
function meadow({ position, color }) {
  for (let v = 0; v < position.count; v++) {
    const [x, y] = [position.getX(v), position.getY(v)];
    const [wide, narrow] = [mottle(x / 9, y / 9), mottle(x / 2.3, y / 2.3)];
    const [light, dry] = [1 + 0.2 * wide + 0.12 * narrow, 0.12 * wide - 0.08 * narrow];
    color.setXYZ(v, color.getX(v) * light * (1 + 2 * dry), color.getY(v) * light * (1 + 0.5 * dry), color.getZ(v) * light * (1 - dry));
  }
}

/** Put an object where its entry says: q is w x y z there, x y z w here. */
export function place(object, { p = [0, 0, 0], q = [1, 0, 0, 0] }) {
  object.position.set(...p);
  object.quaternion.set(q[1], q[2], q[3], q[0]);
}

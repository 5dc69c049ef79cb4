// Bodies and props: a group for each, into which the shapes of the scene are hung, moved by the frames of the stream.
// All shapes of a body that are of one finish become one mesh: each mesh costs a call, and a machine has hundreds of
// shapes.

import * as THREE from "three";
import { Materials } from "./materials.js";
import { meshOf, mergedMesh, place, surfaceGeometry } from "./shapes.js";
import { Struts } from "./struts.js";

const HIDDEN = 0.01; // a shape scaled by a signal below this is not shown

export class Bodies {
  #materials;
  #surfaces = new Map();
  #scaled = [];
  #struts = new Struts();

  /** `plain`: with few triangles, for who draws with the processor. */
  constructor(scene, reflections, plain = false) {
    this.plain = plain;
    this.#materials = new Materials(reflections);
    this.root = new THREE.Group();
    scene.add(this.root);
    this.names = [];
    this.groups = []; // one per body, in the order of hello.bodies
    this.byName = new Map();
    this.props = [];
    this.seats = []; // entries of the kind camera
    this.frames = []; // entries of the kind frame
    this.planes = [];
    this.ready = false; // whether a scene has come
  }

  /** Begin anew: a node has said which bodies there are. */
  rebuild({ bodies, props = [] }) {
    this.#clear();
    this.root.clear();
    this.byName.clear();
    const grow = (name, prop) => {
      const group = new THREE.Group();
      group.name = name;
      group.userData = { body: name, prop };
      group.visible = !prop; // a prop is shown once it has been said where it stands
      this.byName.set(name, group);
      this.root.add(group);
      return group;
    };
    this.names = bodies;
    this.groups = bodies.map((name) => grow(name, false));
    this.props = props.map((name) => grow(name, true));
    this.byName.set("", this.root);
  }

  /** Hang up the shapes; a scene that comes again replaces the one before. */
  dress(entries) {
    this.#clear();
    const parts = new Map(); // body to finish to entries
    for (const entry of entries) {
      if (entry.kind === "surface") this.#surfaces.set(entry.name, surfaceGeometry(entry));
      else if (entry.kind === "camera") this.seats.push(entry);
      else if (entry.kind === "frame") this.frames.push(entry);
      else if (entry.kind === "plane") this.planes.push(entry);
      else if (entry.kind === "strut" || entry.signal) this.#hang(entry);
      else {
        if (!parts.has(entry.body)) parts.set(entry.body, new Map());
        const finish = entry.finish ?? "paint";
        const own = parts.get(entry.body);
        if (!own.has(finish)) own.set(finish, []);
        own.get(finish).push(entry);
      }
    }
    for (const [body, finishes] of parts) for (const [finish, own] of finishes) this.#hangAll(body, finish, own);
    this.ready = true;
  }

  #hangAll(body, finish, entries) {
    const group = this.byName.get(body);
    const mesh = group && mergedMesh(entries, this.#materials.shared(finish), this.#surfaces, this.plain);
    if (!mesh) return;
    mesh.userData.body = body;
    group.add(mesh);
  }

  #hang(entry) {
    const group = this.byName.get(entry.body);
    const other = entry.kind === "strut" && this.byName.get(entry.body_b);
    if (group && other) this.#struts.add(entry, group, other, this.root, this.#materials);
    const mesh = group && meshOf(entry, this.#materials, this.#surfaces, this.plain);
    if (!mesh) return;
    mesh.userData.body = entry.body;
    group.add(mesh);
    if (entry.signal) this.#scaled.push({ mesh, signal: entry.signal, scale: entry.scale ?? [1, 1, 1] });
  }

  #clear() {
    const meshes = [];
    this.root.traverse((object) => object.isMesh && meshes.push(object));
    for (const mesh of meshes) {
      mesh.removeFromParent();
      mesh.geometry.dispose();
    }
    this.#surfaces.clear();
    this.#materials.dispose();
    this.#scaled = [];
    this.#struts.clear();
    [this.seats, this.frames, this.planes, this.ready] = [[], [], [], false];
  }

  /** Poses as they are drawn: 7 floats per body. */
  move(poses) {
    for (let k = 0, at = 0; k < this.groups.length; k++, at += 7) {
      const { position, quaternion } = this.groups[k];
      position.set(poses[at], poses[at + 1], poses[at + 2]);
      quaternion.set(poses[at + 4], poses[at + 5], poses[at + 6], poses[at + 3]);
    }
    this.#struts.update();
  }

  moveProp(index, pose) {
    const prop = this.props[index];
    if (!prop) return;
    place(prop, { p: pose.subarray(0, 3), q: pose.subarray(3, 7) });
    prop.visible = true;
  }

  /** Shapes that a signal scales, like the soil in a bucket. */
  fill(valueOf) {
    for (const { mesh, signal, scale } of this.#scaled) {
      const value = Math.min(1, Math.max(0, valueOf(signal) ?? 0)) || 0;
      mesh.visible = value >= HIDDEN;
      mesh.scale.set(...scale.map((s) => (s > 0 ? s * Math.max(value, HIDDEN) : 1)));
    }
  }

  /** Whether panes are looked at or looked through. */
  seeThrough(clear) {
    this.#materials.seeThrough(clear);
  }

  /** How the shapes are drawn that a signal scales. */
  get scaled() {
    return this.#scaled.map(({ mesh, signal }) => ({ signal, shown: mesh.visible, scale: mesh.scale.toArray() }));
  }

  /** Where a body is drawn, as the stream writes poses. */
  pose(name) {
    const { position: p, quaternion: q } = this.byName.get(name);
    return { p: p.toArray(), q: [q.w, q.x, q.y, q.z] };
  }
}

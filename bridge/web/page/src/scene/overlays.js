// What is drawn over the machine on demand: axes of bodies and joints, and the trails that bodies leave.

import * as THREE from "three";
import { place } from "./shapes.js";

const KEPT = 500; // points of a trail
const STEP = 0.03; // [m] a body moves before its trail has another point
const COLOURS = [0xf2b02e, 0x58c7f3, 0x35c98b, 0xf07f5a, 0xd98cc0, 0xf0e442, 0x7fa7ff];

function axes(size) {
  const helper = new THREE.AxesHelper(size);
  helper.material.depthTest = false;
  helper.material.fog = false;
  helper.renderOrder = 5;
  helper.raycast = () => {};
  return helper;
}

/** Axes at every body's origin and, larger, at every joint frame of the scene. */
export class Frames {
  #made = [];
  on = false;

  rebuild(bodies) {
    for (const helper of this.#made) {
      helper.removeFromParent();
      helper.dispose();
    }
    this.#made = [];
    for (const group of bodies.groups) this.#add(group, axes(0.5), {});
    for (const entry of bodies.frames) {
      const group = bodies.byName.get(entry.body);
      if (group) this.#add(group, axes(0.9), entry);
    }
    this.show(this.on);
  }

  #add(group, helper, entry) {
    place(helper, entry);
    group.add(helper);
    this.#made.push(helper);
  }

  show(on) {
    this.on = on;
    for (const helper of this.#made) helper.visible = on;
  }
}

/** Lines along which bodies have moved. */
export class Trails {
  #lines = [];
  on = false;

  constructor(scene) {
    this.group = new THREE.Group();
    scene.add(this.group);
  }

  rebuild(bodies) {
    for (const { line } of this.#lines) line.geometry.dispose();
    this.group.clear();
    this.#lines = bodies.groups.map((body, k) => {
      const geometry = new THREE.BufferGeometry();
      geometry.setAttribute("position", new THREE.BufferAttribute(new Float32Array(3 * KEPT), 3));
      geometry.setDrawRange(0, 0);
      const material = new THREE.LineBasicMaterial({ color: COLOURS[k % COLOURS.length], fog: false });
      const line = new THREE.Line(geometry, material);
      line.frustumCulled = false;
      line.raycast = () => {};
      this.group.add(line);
      return { body, line, last: new THREE.Vector3(Infinity, 0, 0), count: 0 };
    });
  }

  show(on) {
    this.on = on;
    this.group.visible = on;
    for (const trail of this.#lines) trail.count = 0;
  }

  update() {
    if (!this.on) return;
    for (const trail of this.#lines) {
      const { position } = trail.body;
      if (trail.count > 0 && position.distanceTo(trail.last) < STEP) continue;
      const attribute = trail.line.geometry.attributes.position;
      if (trail.count === KEPT) {
        attribute.array.copyWithin(0, 3);
        trail.count--;
      }
      position.toArray(attribute.array, 3 * trail.count++);
      trail.last.copy(position);
      trail.line.geometry.setDrawRange(0, trail.count);
      attribute.needsUpdate = true;
    }
  }
}

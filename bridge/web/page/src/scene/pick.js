// Picking: a click (not a drag) on a shape chooses its body, which then glows; a click on the ground lets it go.

import * as THREE from "three";

const STILL = 5; // [px] that a click may move

export class Picker {
  #ray = new THREE.Raycaster();
  #glow = new THREE.Color(0x2b1d00);
  #lit = [];
  #down = null;

  /** Calls `chosen(name)`, or `chosen(null)`. */
  constructor(canvas, camera, bodies, chosen) {
    Object.assign(this, { canvas, camera, bodies, chosen, body: null });
    canvas.addEventListener("pointerdown", (event) => (this.#down = [event.clientX, event.clientY]));
    canvas.addEventListener("pointerup", (event) => {
      const [x, y] = this.#down ?? [NaN, NaN];
      this.#down = null;
      if (Math.hypot(event.clientX - x, event.clientY - y) < STILL) this.choose(this.at(event.clientX, event.clientY));
    });
  }

  /** Which body is seen at a place of the window; null for none. */
  at(x, y) {
    const box = this.canvas.getBoundingClientRect();
    const place = new THREE.Vector2(((x - box.left) / box.width) * 2 - 1, 1 - ((y - box.top) / box.height) * 2);
    this.#ray.setFromCamera(place, this.camera);
    const hit = this.#ray.intersectObject(this.bodies.root, true).find(({ object }) => object.isMesh && object.visible);
    return hit?.object.userData.body || null;
  }

  choose(name) {
    for (const { mesh, material } of this.#lit) {
      mesh.material.dispose();
      mesh.material = material;
    }
    this.#lit = [];
    this.body = name !== null && this.bodies.byName.has(name) ? name : null;
    if (this.body !== null) {
      for (const mesh of this.#meshes(this.body)) {
        this.#lit.push({ mesh, material: mesh.material });
        mesh.material = mesh.material.clone();
        mesh.material.emissive.copy(this.#glow).multiplyScalar(4);
      }
    }
    this.chosen(this.body);
  }

  /** Its shapes, wherever they hang: those of cylinders between two bodies hang in the world. */
  #meshes(name) {
    const meshes = [];
    this.bodies.root.traverse((object) => object.isMesh && object.userData.body === name && meshes.push(object));
    return meshes;
  }

  /** Shapes were made anew: what was lit is gone. */
  forget() {
    this.#lit = [];
    this.choose(null);
  }
}

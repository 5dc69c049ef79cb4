// Contact forces as arrows: one instanced shaft and one instanced head for all of them, coloured by strength. The
// longest arrow of the last while is LONGEST metres; small forces stay visible by the square root.

import * as THREE from "three";
import { decodeArrows } from "../link/decode.js";

const MOST = 512;
const LONGEST = 2.2; // [m]
const WEAK = new THREE.Color(0x58c7f3);
const STRONG = new THREE.Color(0xff4d3d);

export class Arrows {
  #peak = 1;
  #newest = { count: 0, numbers: new Float32Array(0) };

  constructor(scene) {
    const material = new THREE.MeshBasicMaterial({ fog: false });
    const along = (geometry, z) => geometry.rotateX(Math.PI / 2).translate(0, 0, z);
    this.shafts = new THREE.InstancedMesh(along(new THREE.CylinderGeometry(0.025, 0.025, 1, 8), 0.5), material, MOST);
    this.heads = new THREE.InstancedMesh(along(new THREE.ConeGeometry(0.08, 0.22, 12), 0.11), material, MOST);
    this.group = new THREE.Group();
    for (const mesh of [this.shafts, this.heads]) {
      mesh.frustumCulled = false;
      mesh.raycast = () => {};
      mesh.count = 0;
      this.group.add(mesh);
    }
    scene.add(this.group);
  }

  get count() {
    return this.#newest.count;
  }

  clear() {
    this.#newest = { count: 0, numbers: new Float32Array(0) };
    this.#peak = 1;
    this.#draw();
  }

  take(buffer) {
    this.#newest = decodeArrows(buffer);
    this.#draw();
  }

  #draw() {
    const { numbers } = this.#newest;
    const count = Math.min(this.#newest.count, MOST);
    const [at, force, up] = [new THREE.Vector3(), new THREE.Vector3(), new THREE.Vector3(0, 0, 1)];
    const [turn, matrix, scale, colour] = [new THREE.Quaternion(), new THREE.Matrix4(), new THREE.Vector3(), new THREE.Color()];
    this.#peak *= 0.995; // forgotten slowly: the scale does not jump
    for (let k = 0; k < count; k++) this.#peak = Math.max(this.#peak, force.fromArray(numbers, 6 * k + 3).length());
    for (let k = 0; k < count; k++) {
      at.fromArray(numbers, 6 * k);
      const size = force.fromArray(numbers, 6 * k + 3).length();
      const share = Math.sqrt(size / this.#peak);
      turn.setFromUnitVectors(up, size > 0 ? force.divideScalar(size) : up);
      this.shafts.setMatrixAt(k, matrix.compose(at, turn, scale.set(1, 1, Math.max(0.01, share * LONGEST))));
      at.addScaledVector(force, share * LONGEST);
      this.heads.setMatrixAt(k, matrix.compose(at, turn, scale.setScalar(0.5 + 0.5 * share)));
      colour.lerpColors(WEAK, STRONG, share);
      this.shafts.setColorAt(k, colour);
      this.heads.setColorAt(k, colour);
    }
    for (const mesh of [this.shafts, this.heads]) {
      mesh.count = count;
      mesh.instanceMatrix.needsUpdate = true;
      if (mesh.instanceColor) mesh.instanceColor.needsUpdate = true;
    }
  }
}

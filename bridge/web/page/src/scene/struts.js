// Hydraulic cylinders: drawn between a point of one body and a point of another, anew with every picture. The barrel
// keeps its length, the rod comes out of it as far as it has to.

import * as THREE from "three";

const ROD = { colour: [0.86, 0.88, 0.9], finish: "steel" };
const Z = new THREE.Vector3(0, 0, 1);

/** A cylinder from the origin one metre along z, to be stretched. */
const tube = (radius) => new THREE.CylinderGeometry(radius, radius, 1, 20).rotateX(Math.PI / 2).translate(0, 0, 0.5);

export class Struts {
  #made = [];
  #from = new THREE.Vector3();
  #along = new THREE.Vector3();

  /** `group` and `other` are what its two ends are fixed to; meshes are hung into `root`, in world axes. */
  add(entry, group, other, root, materials) {
    const [barrel, rod, length] = entry.size;
    const part = (radius, material) => {
      const mesh = new THREE.Mesh(tube(radius), material);
      mesh.castShadow = mesh.receiveShadow = true;
      mesh.userData.body = entry.body;
      root.add(mesh);
      return mesh;
    };
    const ends = [entry.p, entry.p_b].map((p) => new THREE.Vector3(...p));
    this.#made.push({ group, other, ends, length, barrel: part(barrel, materials.of(entry)), rod: part(rod, materials.of(ROD)) });
  }

  clear() {
    this.#made = [];
  }

  /** After the bodies have moved. */
  update() {
    for (const { group, other, ends, length, barrel, rod } of this.#made) {
      const from = this.#from.copy(ends[0]).applyQuaternion(group.quaternion).add(group.position);
      const along = this.#along.copy(ends[1]).applyQuaternion(other.quaternion).add(other.position).sub(from);
      const reach = along.length();
      along.normalize();
      barrel.position.copy(from);
      barrel.quaternion.setFromUnitVectors(Z, along);
      barrel.scale.z = Math.min(length, reach);
      rod.position.copy(from).addScaledVector(along, 0.5 * barrel.scale.z);
      rod.quaternion.copy(barrel.quaternion);
      rod.scale.z = Math.max(0.01, reach - 0.5 * barrel.scale.z);
    }
  }
}

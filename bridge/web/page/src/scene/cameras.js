// Where the picture is taken from: orbit (free), follow (free, but moves along with the machine), the operator's seat,
// and from above.

import * as THREE from "three";
import { OrbitControls } from "three/examples/jsm/controls/OrbitControls.js";

export const VIEWS = ["orbit", "follow", "seat", "top"];
const MAIN = /(chassis|undercarriage|base|carriage|frame|cart|hull)/i;
const CAB = /(cab|house|upper|seat|platform)/i;
const HOME = new THREE.Vector3(-7.2, -9.6, 3.4); // from the machine, where the first picture is taken

export class Cameras {
  #last = new THREE.Vector3();
  #seat = { group: null, at: new THREE.Vector3(), turn: new THREE.Quaternion() };
  #framed = false;
  #home = { eye: HOME.clone(), centre: new THREE.Vector3() }; // from what is followed, when the whole machine was in the picture

  constructor(element) {
    this.camera = new THREE.PerspectiveCamera(45, 1, 0.1, 900);
    this.camera.up.set(0, 0, 1);
    this.orbit = new OrbitControls(this.camera, element);
    this.orbit.maxPolarAngle = 0.495 * Math.PI;
    this.orbit.minDistance = 1;
    this.orbit.maxDistance = 150;
    this.orbit.zoomToCursor = true;
    this.view = "follow";
    this.main = null; // the group that is followed
  }

  /** Which body to follow and where the seat is; a scene without a camera gets one on what looks like a cab. */
  rebuild(bodies) {
    const find = (pattern) => bodies.groups.find(({ name }) => pattern.test(name));
    this.main = find(MAIN) ?? bodies.groups[0] ?? null;
    const given = bodies.seats[0];
    const cab = given ? bodies.byName.get(given.body) : find(CAB);
    this.#seat.group = cab ?? null;
    const { p = [0.4, 0.6, 1.1], q = [1, 0, 0, 0] } = given ?? {};
    this.#seat.at.set(...p);
    this.#seat.turn.set(q[1], q[2], q[3], q[0]);
    this.#framed = false;
  }

  get hasSeat() {
    return this.#seat.group !== null;
  }

  target(out = new THREE.Vector3()) {
    return this.main ? out.copy(this.main.position) : out.set(0, 0, 0);
  }

  /** Stand where the whole machine is in the picture, however large it is. */
  frame(bodies) {
    const box = new THREE.Box3();
    for (const group of bodies.groups) box.expandByObject(group);
    const centre = box.isEmpty() ? new THREE.Vector3() : box.getCenter(new THREE.Vector3());
    const size = box.isEmpty() ? 8 : Math.max(1.5, box.getSize(new THREE.Vector3()).length());
    this.orbit.target.copy(centre);
    this.camera.position.copy(centre).addScaledVector(HOME, size / 11);
    this.target(this.#last);
    this.#home = { eye: this.camera.position.clone().sub(this.#last), centre: centre.clone().sub(this.#last) };
    this.#framed = true;
  }

  choose(view) {
    if (view === "seat" && !this.hasSeat) return;
    const left = this.view;
    this.view = view;
    const target = this.target();
    if (view === "top") {
      this.orbit.target.copy(target);
      this.camera.position.set(target.x - 0.01, target.y, target.z + 24);
    } else if (view !== "seat" && (left === "seat" || left === "top")) {
      this.orbit.target.copy(target).add(this.#home.centre);
      this.camera.position.copy(target).add(this.#home.eye);
    }
    this.#open();
    this.orbit.enabled = view !== "seat";
    this.#last.copy(target);
  }

  /** Look from one place to another [m], both of the world. */
  look(at, target) {
    this.choose("orbit");
    this.#framed = true;
    this.orbit.target.set(...target);
    this.camera.position.set(...at);
  }

  resize(width, height) {
    this.camera.aspect = width / height;
    this.#open();
  }

  /** How wide it looks: upright pictures, as on a phone, see as much from left to right as square ones. */
  #open() {
    const half = Math.tan((0.5 * (this.view === "seat" ? 62 : 45) * Math.PI) / 180);
    this.camera.fov = (2 * Math.atan(half / Math.min(1, this.camera.aspect)) * 180) / Math.PI;
    this.camera.updateProjectionMatrix();
  }

  update(bodies) {
    if (!this.#framed && bodies.ready) this.frame(bodies);
    if (this.view === "seat" && this.hasSeat) {
      this.#sit();
      return;
    }
    const target = this.target();
    if (this.view === "follow" || this.view === "top") {
      const moved = target.clone().sub(this.#last);
      this.camera.position.add(moved);
      this.orbit.target.add(moved);
    }
    this.#last.copy(target);
    this.orbit.update();
  }

  /** In the seat: looks along x of the seat's frame, z up; three.js looks along -z with y up. */
  #sit() {
    const { group, at, turn } = this.#seat;
    group.updateWorldMatrix(true, false);
    this.camera.position.copy(at).applyMatrix4(group.matrixWorld);
    const facing = new THREE.Quaternion().setFromRotationMatrix(
      new THREE.Matrix4().makeBasis(new THREE.Vector3(0, -1, 0), new THREE.Vector3(0, 0, 1), new THREE.Vector3(-1, 0, 0)),
    );
    this.camera.quaternion.copy(group.quaternion).multiply(turn).multiply(facing);
  }
}

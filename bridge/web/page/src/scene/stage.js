// The stage: renderer, scene and everything on it, drawn when the page says so. It draws into one canvas that moves
// from page to page.

import * as THREE from "three";
import { decodeProps } from "../link/decode.js";
import { Arrows } from "./arrows.js";
import { Bodies } from "./bodies.js";
import { Cameras } from "./cameras.js";
import { Interpolator } from "./interpolate.js";
import { Land } from "./land.js";
import { Frames, Trails } from "./overlays.js";
import { Picker } from "./pick.js";
import { Quality } from "./quality.js";
import { Sky } from "./sky.js";
import { Terrain } from "./terrain.js";

export class Stage {
  #landLaid = false;

  constructor(node) {
    this.node = node;
    this.canvas = document.createElement("canvas");
    this.canvas.className = "stage";
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", "The machine in three dimensions. Keys 1 to 4 choose the camera.");
    this.quality = new Quality();
    this.renderer = new THREE.WebGLRenderer({ canvas: this.canvas, antialias: this.quality.antialias });
    this.quality.attach(this.renderer);
    this.renderer.shadowMap.enabled = true;
    this.renderer.toneMapping = THREE.NeutralToneMapping;
    this.renderer.toneMappingExposure = 1.15;
    this.scene = new THREE.Scene();
    this.sky = new Sky(this.scene, this.renderer, this.quality);
    this.land = new Land(this.scene);
    this.terrain = new Terrain(this.scene, this.quality.stride);
    this.bodies = new Bodies(this.scene, this.sky.reflections);
    this.arrows = new Arrows(this.scene);
    this.frames = new Frames();
    this.trails = new Trails(this.scene);
    this.cameras = new Cameras(this.canvas);
    this.motion = new Interpolator();
    this.picker = new Picker(this.canvas, this.cameras.camera, this.bodies, (name) => node.bus.tell("picked", name));
    new ResizeObserver(() => this.resize()).observe(this.canvas);
    this.#listen(node.bus);
  }

  #listen(bus) {
    bus.on("hello", (hello) => {
      this.motion.reset();
      this.bodies.rebuild(hello);
      this.terrain.rebuild(hello.grids ?? []);
      this.arrows.clear();
      this.#dressed();
    });
    bus.on("scene", ({ shapes }) => {
      this.bodies.dress(shapes);
      this.#dressed();
    });
    bus.on("state", (state) => {
      this.motion.take(state);
      this.terrain.settle();
    });
    bus.on("terrain", (buffer) => this.terrain.take(buffer));
    bus.on("arrows", (buffer) => this.arrows.take(buffer));
    bus.on("props", (buffer) => decodeProps(buffer, (index, pose) => this.bodies.moveProp(index, pose)));
  }

  #dressed() {
    this.picker.forget();
    this.frames.rebuild(this.bodies);
    this.trails.rebuild(this.bodies);
    this.cameras.rebuild(this.bodies);
    this.#landLaid = false;
    this.node.bus.tell("dressed");
  }

  resize() {
    const [width, height] = [this.canvas.clientWidth, this.canvas.clientHeight];
    if (!width || !height) return;
    this.renderer.setSize(width, height, false);
    this.cameras.resize(width, height);
  }

  /** Bring bodies and ground to `now`, without drawing; the age [s] of what will be seen, null if there is nothing. */
  move(now) {
    const seen = this.motion.at(now);
    this.terrain.update();
    if (!this.#landLaid && this.terrain.complete) {
      this.land.rebuild(this.terrain.grids, this.bodies.planes);
      this.#landLaid = true;
    }
    if (!seen) return null;
    this.bodies.move(seen.poses);
    this.bodies.fill((name) => this.node.value(name));
    this.trails.update();
    return seen.age;
  }

  draw() {
    this.cameras.update(this.bodies);
    this.sky.follow(this.cameras.target(), this.cameras.camera);
    this.quality.before();
    this.renderer.render(this.scene, this.cameras.camera);
  }
}

// The stage: renderer, scene and everything on it, drawn when the page says so. It draws into one canvas that moves
// from page to page.

import * as THREE from "three";
import { el } from "../app/dom.js";
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

const NO_WEBGL =
  "This browser cannot draw in three dimensions: WebGL is switched off or missing. Signals, timing, health and the operator's controls work all the same.";

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
    this.renderer = this.#rendering();
    this.scene = new THREE.Scene();
    this.sky = new Sky(this.scene, this.renderer, this.quality);
    this.land = new Land(this.scene, this.quality.plain);
    this.bodies = new Bodies(this.scene, this.sky.reflections, this.quality.plain);
    this.terrain = new Terrain(this.scene, this.bodies, this.quality.stride);
    this.arrows = new Arrows(this.scene);
    this.frames = new Frames();
    this.trails = new Trails(this.scene);
    this.cameras = new Cameras(this.canvas);
    this.motion = new Interpolator();
    this.picker = new Picker(this.canvas, this.cameras.camera, this.bodies, (name) => node.bus.tell("picked", name));
    new ResizeObserver(() => this.resize()).observe(this.canvas);
    this.#listen(node.bus);
  }

  /** What draws; null if this browser cannot, and a sentence stands where the picture would be. */
  #rendering() {
    let renderer;
    try {
      renderer = new THREE.WebGLRenderer({ canvas: this.canvas, antialias: this.quality.antialias });
    } catch {
      this.canvas = el("div.stage.blank", { role: "img", tabIndex: 0 }, el("p", {}, NO_WEBGL));
      return null;
    }
    this.quality.attach(renderer);
    renderer.shadowMap.enabled = true;
    if (this.quality.plain) renderer.shadowMap.type = THREE.BasicShadowMap;
    renderer.toneMapping = this.quality.plain ? THREE.LinearToneMapping : THREE.NeutralToneMapping;
    renderer.toneMappingExposure = this.quality.plain ? 1.35 : 1.75; // the neutral one takes light away
    return renderer;
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
    if (!width || !height || !this.renderer) return;
    this.renderer.setSize(width, height, false);
    this.cameras.resize(width, height);
  }

  /** Bring bodies and ground to `now`, without drawing; when what will be seen was made [s, server's clock]. */
  move(now) {
    const seen = this.motion.at(now);
    this.terrain.update();
    if (!this.#landLaid && this.terrain.complete) {
      this.land.rebuild(this.terrain.grids, this.bodies.planes);
      this.#landLaid = true;
    }
    if (!seen) return NaN;
    this.bodies.move(seen.poses);
    this.bodies.fill((name) => this.node.value(name));
    this.trails.update();
    return seen.made;
  }

  draw() {
    if (!this.renderer) return;
    this.cameras.update(this.bodies);
    this.bodies.seeThrough(this.cameras.view === "seat");
    this.sky.follow(this.cameras.target(), this.cameras.camera);
    this.quality.before();
    this.renderer.render(this.scene, this.cameras.camera);
  }
}

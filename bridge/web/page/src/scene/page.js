// The viewer: the machine fills the page; what can be chosen lies on top of it.

import { el, enable } from "../app/dom.js";
import { TimeBar } from "../app/timebar.js";
import { VIEWS } from "./cameras.js";
import { Card } from "./card.js";

const LABELS = { orbit: "Orbit", follow: "Follow", seat: "Seat", top: "Top" };

/** Cameras as buttons in a row, one of them pressed; also used by the operator's page. */
export class CameraButtons {
  constructor(node, stage) {
    this.stage = stage;
    this.buttons = VIEWS.map((view, k) =>
      el("button", { onclick: () => this.choose(view), "data-title": `Camera: ${view} (${k + 1})` }, LABELS[view]));
    this.element = el("div.segments", { role: "group", "aria-label": "camera" }, this.buttons);
    node.bus.on("dressed", () => this.show());
    this.show();
  }

  choose(view) {
    this.stage.cameras.choose(view);
    this.show();
  }

  /** Called with each picture: not only these buttons choose. */
  update() {
    if (this.shown !== this.stage.cameras.view) this.show();
  }

  show() {
    this.shown = this.stage.cameras.view;
    VIEWS.forEach((view, k) => {
      const why = view === "seat" && !this.stage.cameras.hasSeat ? "this machine has neither a seat nor a cab" : "";
      enable(this.buttons[k], why);
      this.buttons[k].setAttribute("aria-pressed", this.stage.cameras.view === view);
    });
  }
}

export class ViewerPage {
  path = "/";
  title = "Viewer";
  stage = true;

  constructor(node, stage, toasts) {
    this.scene = stage;
    this.time = new TimeBar(node, toasts);
    this.card = new Card(node, stage);
    this.cameras = new CameraButtons(node, stage);
    this.host = el("div.host");
    const toggles = [
      this.#toggle("Forces", "Contact forces as arrows", true, (on) => (stage.arrows.group.visible = on)),
      this.#toggle("Frames", "Axes of bodies and joints", false, (on) => stage.frames.show(on)),
      this.#toggle("Trails", "Where bodies have been", false, (on) => stage.trails.show(on)),
      this.#toggle("Grid", "Lines every 10 m", true, (on) => stage.land.show(on)),
      this.#toggle("Smooth", "Motion between frames, about one frame later", true, (on) => (stage.motion.enabled = on)),
    ];
    this.element = el("section.viewer", {}, this.host,
      el("div.tools.panel", {}, this.cameras.element, el("div.toggles", {}, toggles)),
      this.card.element, this.time.element,
      el("p.hint.dim", {}, "drag to turn · scroll to come closer · click a part for its values"));
    this.#keys = (event) => this.#key(event);
  }

  #keys;

  #toggle(label, title, on, act) {
    const box = el("input", { type: "checkbox", checked: on, onchange: () => act(box.checked) });
    return el("label.toggle", { title }, box, el("span", {}, label));
  }

  show() {
    this.host.append(this.scene.canvas);
    this.scene.resize();
    this.cameras.show();
    addEventListener("keydown", this.#keys);
  }

  hide() {
    removeEventListener("keydown", this.#keys);
  }

  #key(event) {
    if (/^(INPUT|SELECT|TEXTAREA|BUTTON)$/.test(event.target.tagName) && event.key !== "Escape") return;
    const view = VIEWS[Number(event.key) - 1];
    if (view) this.cameras.choose(view);
    else if (event.key === " ") this.time.toggle();
    else if (event.key === ".") this.time.stepOnce();
    else if (event.key === "Escape") this.scene.picker.choose(null);
    else return;
    event.preventDefault();
  }

  update(now) {
    this.card.update(now);
    this.cameras.update();
    this.time.update();
  }
}

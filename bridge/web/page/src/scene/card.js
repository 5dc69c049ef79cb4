// The card of a picked body: where it is, and every signal that begins with its name or with that of one of its joints;
// forces stand first.

import { el, write } from "../app/dom.js";
import { number, unitOf } from "../app/format.js";

const FORCE = /(force|pull|torque|pressure|load|moment)/i;
const ABOUT = 150; // [ms] between refreshed numbers

/**
 * Signals of a body: "machine.boom" has "machine.boom.angle"; a body "boom" also "machine.boom.angle". And those of the
 * joints that hold it, which entries of the kind frame tell.
 */
export function signalsOf(body, signals, joints = []) {
  const names = [body, ...joints.filter((joint) => joint.body === body || joint.body_b === body).map(({ name }) => name)];
  const own = signals.filter(({ name }) => names.some((first) => name.startsWith(`${first}.`)));
  if (own.length) return own;
  return signals.filter(({ name }) => name.split(".").slice(0, -1).includes(body.split(".").at(-1)));
}

export class Card {
  #node;
  #stage;
  #rows = [];
  #written = 0;

  constructor(node, stage) {
    this.#node = node;
    this.#stage = stage;
    this.title = el("h2");
    this.place = el("dl.readings");
    this.list = el("dl.readings.own");
    this.element = el("aside.card.panel", { hidden: true, "aria-label": "picked body" },
      el("header", {}, this.title, el("button.quiet", { title: "Close (Esc)", "aria-label": "Close", onclick: () => stage.picker.choose(null) }, "✕")),
      this.place, this.list);
    node.bus.on("picked", (name) => this.#show(name));
  }

  #row(list, label, unit, read, force = false) {
    const value = el("b.mono");
    list.append(el(`dt${force ? ".first" : ""}`, { title: label }, label), el("dd", {}, value, el("small", {}, ` ${unit}`)));
    this.#rows.push({ value, read });
  }

  #show(name) {
    this.element.hidden = name === null;
    this.#rows = [];
    this.place.replaceChildren();
    this.list.replaceChildren();
    if (name === null) return;
    write(this.title, name);
    const pose = () => this.#stage.bodies.pose(name);
    ["x", "y", "z"].forEach((axis, k) => this.#row(this.place, axis, "m", () => pose().p[k].toFixed(3)));
    ["roll", "pitch", "yaw"].forEach((axis, k) => this.#row(this.place, axis, "°", () => turns(pose().q)[k].toFixed(2)));
    const signals = signalsOf(name, this.#node.signals, this.#stage.bodies.frames);
    signals.sort((a, b) => FORCE.test(b.name) - FORCE.test(a.name));
    for (const given of signals) {
      const signal = given.name;
      const label = signal.startsWith(`${name}.`) ? signal.slice(name.length + 1) : signal;
      this.#row(this.list, label, unitOf(given), () => number(this.#node.value(signal)), FORCE.test(signal));
    }
    this.list.hidden = signals.length === 0;
    this.#written = 0;
  }

  update(now) {
    if (this.element.hidden || now - this.#written < ABOUT) return;
    this.#written = now;
    for (const { value, read } of this.#rows) write(value, read());
  }
}

/** Roll, pitch and yaw [degrees] of a quaternion w x y z: turns about x, then y, then z of the world. */
export function turns([w, x, y, z]) {
  const degrees = 180 / Math.PI;
  return [
    Math.atan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y)) * degrees,
    Math.asin(Math.max(-1, Math.min(1, 2 * (w * y - z * x)))) * degrees,
    Math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)) * degrees,
  ];
}

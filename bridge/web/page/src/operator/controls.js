// Controls on the screen for fingers and mice: a stick, a lever or pedal that comes back, and those that stay.

import { el, svg, write } from "../app/dom.js";

/** A stick of two axes. `value` is [x, y], right and away positive; let go, it comes back to the middle. */
export class Stick {
  value = [0, 0];

  constructor(label) {
    this.knob = svg("circle", { r: 17, class: "knob" });
    this.marks = { left: svg("text", { x: -50, y: -5 }), right: svg("text", { x: 50, y: -5 }), away: svg("text", { x: 0, y: -53 }), back: svg("text", { x: 0, y: 60 }) };
    const pad = svg("svg", { viewBox: "-75 -75 150 150", role: "img", "aria-label": `${label} stick` },
      svg("circle", { r: 70, class: "ring" }), svg("line", { x1: -70, x2: 70, class: "cross" }), svg("line", { y1: -70, y2: 70, class: "cross" }),
      ...Object.values(this.marks), this.knob);
    this.element = el("div.stick", {}, pad);
    const place = (event) => {
      const box = pad.getBoundingClientRect();
      const [x, y] = [(2 * (event.clientX - box.left)) / box.width - 1, 1 - (2 * (event.clientY - box.top)) / box.height];
      this.value = [x, y].map((v) => Math.max(-1, Math.min(1, v / 0.72)));
    };
    hold(pad, place, () => (this.value = [0, 0]));
  }

  /** What its ways move, in words. */
  name(marks) {
    for (const [way, text] of Object.entries(marks)) write(this.marks[way], text);
  }

  show([x, y]) {
    this.knob.setAttribute("cx", 52 * x);
    this.knob.setAttribute("cy", -52 * y);
  }
}

/** A lever from -1 (or 0) to 1 that comes back to 0. */
export class Lever {
  value = 0;

  constructor(label, { oneSided = false, title = "" } = {}) {
    this.fill = el("i");
    this.track = el(`div.lever${oneSided ? ".one" : ""}`, { role: "slider", "aria-label": label, "aria-valuemin": oneSided ? 0 : -1, "aria-valuemax": 1 }, this.fill);
    this.element = el("div.control", { title }, el("small", {}, label), this.track);
    this.oneSided = oneSided;
    hold(this.track, (event) => {
      const box = this.track.getBoundingClientRect();
      const x = (event.clientX - box.left) / box.width;
      this.value = Math.max(oneSided ? 0 : -1, Math.min(1, oneSided ? x : 2 * x - 1));
    }, () => (this.value = 0));
  }

  show(value) {
    const [from, to] = this.oneSided ? [0, value] : [Math.min(0, value), Math.max(0, value)].map((v) => 0.5 + 0.5 * v);
    this.fill.style.left = `${100 * from}%`;
    this.fill.style.width = `${Math.max(100 * (to - from), 1.5)}%`;
    this.track.setAttribute("aria-valuenow", value.toFixed(2));
  }
}

/** Follow a pointer from when it goes down to when it is let go, wherever it wanders. */
function hold(element, move, release) {
  let finger = null;
  element.addEventListener("pointerdown", (event) => {
    if (finger !== null) return;
    finger = event.pointerId;
    element.setPointerCapture(finger);
    move(event);
  });
  element.addEventListener("pointermove", (event) => event.pointerId === finger && move(event));
  for (const end of ["pointerup", "pointercancel", "lostpointercapture"]) {
    element.addEventListener(end, (event) => {
      if (event.pointerId !== finger) return;
      finger = null;
      release();
    });
  }
}

/** A channel that stays where it is put: a switch, a choice between whole numbers, or a slider. */
export class Setting {
  constructor(channel) {
    const { name, low, high, neutral, kind, unit, doc } = channel;
    this.channel = channel;
    this.value = neutral;
    const label = name.split(".").at(-1).replaceAll("_", " ");
    if (kind === "switch") this.part = this.#toggle(label);
    else if (kind === "button") this.part = this.#press(label);
    else if (kind === "choice" && high - low <= 6) this.part = this.#choice(label, channel);
    else this.part = this.#slider(label);
    this.element = el("div.control", { title: [doc, unit].filter(Boolean).join(", ") }, kind === "button" || kind === "switch" ? null : el("small", {}, label), this.part);
  }

  #toggle(label) {
    const button = el("button.switch", { "aria-pressed": this.value > 0.5, onclick: () => this.set(this.value > 0.5 ? 0 : 1) }, label);
    this.set = (value) => {
      this.value = value;
      button.setAttribute("aria-pressed", value > 0.5);
    };
    return button;
  }

  #press(label) {
    const button = el("button.switch", {}, label);
    this.set = () => {}; // it comes back by itself
    hold(button, () => (this.value = this.channel.high), () => (this.value = this.channel.neutral));
    return button;
  }

  #choice(label, { low, high, name }) {
    const words = /pattern$/.test(name) ? ["ISO", "SAE"] : /steer_?mode$/.test(name) ? ["Ackermann", "pivot", "crab"] : [];
    const buttons = Array.from({ length: Math.round(high - low) + 1 }, (_, k) =>
      el("button", { "aria-pressed": low + k === this.value, onclick: () => this.set(low + k) }, words[k] ?? `${low + k}`));
    this.set = (value) => {
      this.value = value;
      buttons.forEach((button, k) => button.setAttribute("aria-pressed", low + k === value));
    };
    return el("div.segments", { role: "group", "aria-label": label }, buttons);
  }

  #slider(label) {
    const { low, high } = this.channel;
    const input = el("input", { type: "range", min: low, max: high, step: (high - low) / 100, value: this.value, "aria-label": label, oninput: () => (this.value = Number(input.value)) });
    this.set = (value) => {
      this.value = value;
      input.value = value;
    };
    return input;
  }
}

// Instruments, each found by the name of a signal; what a machine does not have is not shown.

import { el, svg, write } from "../app/dom.js";
import { fixed } from "../app/format.js";

const RPM = 30 / Math.PI;
const DEGREES = 180 / Math.PI;

/** Name of the instrument, pattern of its signal, unit shown, usual range, and what makes one of the other. */
const GAUGES = [
  { label: "engine", pattern: /(^|\.)engine\.(speed|rpm|revolutions)$/, unit: "rpm", range: [0, 2400], convert: { "rad/s": RPM } },
  { label: "speed", pattern: /^(?!.*(engine|wheel|swing|pump)).*(^|\.)(speed|velocity)$/, unit: "km/h", range: [-20, 20], convert: { "m/s": 3.6 } },
  { label: "load", pattern: /(bucket\.load|load\.mass|payload)$/, unit: "kg", range: [0, 2500], convert: { N: 1 / 9.81 } },
  { label: "stability", pattern: /(^|\.)stability(\.margin)?$/, unit: "", range: [0, 0.5], low: 0.1 },
  { label: "pressure", pattern: /(hydraulics|pump|system)\.pressure$/, unit: "bar", range: [0, 350], convert: { Pa: 1e-5 }, high: 0.92 },
  { label: "blade", pattern: /(^|\.)blade\.(angle|height|position|stroke)$/, unit: "", range: [-0.6, 0.6], convert: { rad: DEGREES }, bar: true },
  { label: "outriggers", pattern: /(^|\.)outriggers?(_left)?\.(angle|extension|position|stroke)$/, unit: "", range: [0, 1.2], convert: { rad: DEGREES }, bar: true },
];
const TURNED = { rad: "°" };
const SWEEP = 240; // [degrees] of a dial

function arc(from, to, radius) {
  const at = (share) => {
    const angle = ((share - 0.5) * SWEEP - 90) / DEGREES;
    return `${(radius * Math.cos(angle)).toFixed(2)} ${(radius * Math.sin(angle)).toFixed(2)}`;
  };
  return `M ${at(from)} A ${radius} ${radius} 0 ${(to - from) * SWEEP > 180 ? 1 : 0} 1 ${at(to)}`;
}

/** A dial with a needle's arc and a number. */
class Dial {
  constructor({ label, unit, range, low, high, convert = {} }, signal) {
    const factor = convert[signal.unit] ?? 1;
    this.factor = factor;
    const bounded = Number.isFinite(signal.low) && Number.isFinite(signal.high);
    this.range = bounded ? [signal.low * factor, signal.high * factor] : [...range];
    const at = (share, otherwise) => (share === undefined ? otherwise : this.range[0] + share * (this.range[1] - this.range[0]));
    this.usual = [at(low, -Infinity), at(high, Infinity)]; // the scale may grow, what is too little or too much does not
    this.hand = svg("path", { class: "hand" });
    this.number = svg("text", { y: 6, class: "figure" });
    const shown = unit || TURNED[signal.unit] || signal.unit || "";
    this.element = el("div.gauge", { title: signal.name },
      svg("svg", { viewBox: "-50 -50 100 88" }, svg("path", { d: arc(0, 1, 42), class: "track" }), this.hand, this.number,
        svg("text", { y: 20, class: "unit" }, shown), svg("text", { y: 36, class: "label" }, label)));
  }

  show(raw) {
    const value = raw * this.factor;
    if (!Number.isFinite(value)) return;
    this.range = [Math.min(this.range[0], value), Math.max(this.range[1], value)];
    const share = (v) => (v - this.range[0]) / (this.range[1] - this.range[0]);
    const [from, to] = [share(Math.max(this.range[0], 0)), share(value)].sort((a, b) => a - b);
    this.hand.setAttribute("d", arc(from, Math.max(to, from + 0.008), 42));
    this.hand.classList.toggle("warn", value < this.usual[0] || value > this.usual[1]);
    write(this.number, fixed(value, Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2));
  }
}

/** A bar from end to end, for things that are up or down. */
class BarGauge {
  constructor({ label, range, convert = {} }, signal) {
    this.factor = convert[signal.unit] ?? 1;
    this.unit = TURNED[signal.unit] ?? signal.unit ?? "";
    const bounded = Number.isFinite(signal.low) && Number.isFinite(signal.high);
    this.range = bounded ? [signal.low, signal.high] : [...range];
    this.mark = el("i");
    this.number = el("b.mono");
    this.element = el("div.gauge.bar-gauge", { title: signal.name }, el("div.column", {}, this.mark), this.number, el("small", {}, label));
  }

  show(value) {
    if (!Number.isFinite(value)) return;
    this.range = [Math.min(this.range[0], value), Math.max(this.range[1], value)];
    this.mark.style.bottom = `${(100 * (value - this.range[0])) / (this.range[1] - this.range[0])}%`;
    const shown = value * this.factor;
    write(this.number, `${fixed(shown, Math.abs(shown) >= 10 ? 0 : 2)} ${this.unit}`);
  }
}

/** Pitch and roll as a horizon seen from behind. */
class Level {
  constructor(pitch, roll) {
    this.ground = svg("g", {}, svg("rect", { x: -80, y: 0, width: 160, height: 90, class: "ground" }), svg("line", { x1: -80, x2: 80, class: "horizon" }));
    this.number = svg("text", { y: 12, class: "unit light" });
    this.pitch = pitch;
    this.roll = roll;
    const clip = svg("clipPath", { id: "level-glass" }, svg("circle", { cy: -12, r: 36 }));
    this.element = el("div.gauge", { title: [pitch, roll].filter(Boolean).join(", ") },
      svg("svg", { viewBox: "-50 -50 100 88" }, clip,
        svg("g", { "clip-path": "url(#level-glass)" }, svg("rect", { x: -50, y: -50, width: 100, height: 100, class: "sky" }), this.ground),
        svg("path", { d: "M -20 -12 H -7 L 0 -6 L 7 -12 H 20", class: "craft" }), this.number, svg("text", { y: 36, class: "label" }, "tilt")));
  }

  show(node) {
    const [pitch, roll] = [this.pitch, this.roll].map((name) => (node.value(name) || 0) * DEGREES);
    this.ground.setAttribute("transform", `translate(0 -12) rotate(${(-roll).toFixed(2)}) translate(0 ${(1.6 * pitch).toFixed(2)})`);
    write(this.number, `${fixed(pitch, 1)}° / ${fixed(roll, 1)}°`);
  }
}

export class Gauges {
  #shown = [];
  #lamps = [];

  constructor(node) {
    this.node = node;
    this.element = el("div.gauges", { "aria-label": "instruments" });
    this.lamps = el("div.lamps");
    node.bus.on("hello", () => this.#build());
  }

  #build() {
    const { signals } = this.node;
    const outputs = signals.filter(({ group }) => group !== "command");
    this.#shown = [];
    for (const gauge of GAUGES) {
      const signal = outputs.find(({ name, group }) => group === "output" && gauge.pattern.test(name));
      if (!signal) continue;
      const made = gauge.bar ? new BarGauge(gauge, signal) : new Dial(gauge, signal);
      this.#shown.push({ made, read: () => made.show(this.node.value(signal.name)) });
    }
    const find = (pattern) => outputs.find(({ name }) => pattern.test(name))?.name;
    const [pitch, roll] = [find(/(^|\.)pitch$/), find(/(^|\.)roll$/)];
    if (pitch || roll) {
      const made = new Level(pitch, roll);
      this.#shown.push({ made, read: () => made.show(this.node) });
    }
    this.element.replaceChildren(...this.#shown.map(({ made }) => made.element));
    this.#lamps = outputs.filter(({ name }) => /(^|\.)(flags?|warnings?)\./.test(name)).map(({ name }) => {
      const lamp = el("span.lamp", { title: name }, name.split(".").at(-1).replaceAll("_", " "));
      return { name, lamp };
    });
    this.lamps.replaceChildren(...this.#lamps.map(({ lamp }) => lamp));
  }

  update() {
    for (const { read } of this.#shown) read();
    for (const { name, lamp } of this.#lamps) lamp.classList.toggle("lit", this.node.value(name) > 0.5);
  }
}

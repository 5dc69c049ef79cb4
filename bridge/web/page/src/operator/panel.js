// The cab's controls on the screen, and what comes out of them: the values of all channels, whatever device is used.

import { el, write } from "../app/dom.js";
import { PATTERNS, channelsOf, scaled, unscaled } from "./channels.js";
import { Lever, Setting, Stick } from "./controls.js";
import { Keyboard, readGamepad } from "./inputs.js";

const WORDS = { swing: ["swing", "swing"], stick: ["stick out", "stick in"], bucket: ["curl", "dump"], boom: ["boom down", "boom up"] };

export class Panel {
  #channels = [];
  #levers = new Map(); // role to Lever
  #settings = new Map(); // index of a channel to Setting
  #pattern = "ISO";

  constructor(node) {
    this.node = node;
    this.sticks = { left: new Stick("left"), right: new Stick("right") };
    this.keyboard = new Keyboard();
    this.levers = el("div.levers");
    this.switches = el("div.switches");
    this.own = el("div.segments", { role: "group", "aria-label": "stick pattern", title: "Which stick moves what" },
      Object.keys(PATTERNS).map((name) => el("button", { onclick: () => this.#choose(name) }, name)));
    this.pad = el("small");
    node.bus.on("hello", ({ cab }) => this.#build(cab));
  }

  #build(cab) {
    this.#channels = channelsOf(cab).map((channel, k) => ({ ...channel, moves: cab.moves?.[k] ?? "" }));
    this.#levers.clear();
    this.#settings.clear();
    for (const channel of this.#channels) {
      const { kind, role, name, doc } = channel;
      const label = name.split(".").at(-1).replaceAll("_", " ");
      if (kind === "lever" || kind === "pedal") this.#levers.set(role, new Lever(label, { oneSided: kind === "pedal", title: doc }));
      else if (kind !== "stick" && kind !== "function") this.#settings.set(channel.index, new Setting(channel));
    }
    const functions = this.#channels.some(({ kind }) => kind === "function");
    this.levers.replaceChildren(...[...this.#levers.values()].map(({ element }) => element));
    this.switches.replaceChildren(...(functions ? [el("div.control", {}, el("small", {}, "pattern"), this.own)] : []), ...[...this.#settings.values()].map(({ element }) => element));
    const any = (side) => this.#channels.some(({ kind, role }) => kind === "function" || (kind === "stick" && role.startsWith(side)));
    for (const side of ["left", "right"]) this.sticks[side].element.classList.toggle("unused", !any(side));
    this.#choose("ISO");
  }

  #choose(name) {
    this.#pattern = name;
    [...this.own.children].forEach((button) => button.setAttribute("aria-pressed", button.textContent === name));
    this.#name(name);
  }

  #name(pattern) {
    const by = Object.fromEntries(Object.entries(PATTERNS[pattern]).map(([what, axis]) => [axis, WORDS[what]]));
    for (const side of ["left", "right"]) {
      const [[left, right], [away, back]] = [by[`${side}.x`], by[`${side}.y`]];
      this.sticks[side].name({ left, right, away, back });
    }
  }

  /** The cab's own pattern channel, if it has one, says how the machine takes the sticks: the marks follow it. */
  #follow() {
    for (const { channel, value } of this.#settings.values()) {
      if (channel.role !== "pattern") continue;
      const name = value > 0.5 ? "SAE" : "ISO";
      if (name !== this.#pattern) this.#choose(name);
    }
  }

  /** All roles now: of keys, gamepad and screen the strongest. */
  #roles(now) {
    const { name, roles: pad } = readGamepad();
    write(this.pad, name ? `gamepad: ${name.slice(0, 80)}` : "");
    const [left, right] = [this.sticks.left.value, this.sticks.right.value];
    const screen = new Map([["left.x", left[0]], ["left.y", left[1]], ["right.x", right[0]], ["right.y", right[1]]]);
    for (const [role, lever] of this.#levers) screen.set(role, lever.value);
    const all = new Map();
    for (const source of [pad, this.keyboard.read(now), screen]) {
      for (const [role, value] of source) if (Math.abs(value) >= Math.abs(all.get(role) ?? 0)) all.set(role, Math.max(-1, Math.min(1, value)));
    }
    return all;
  }

  /** The values to send, in the order of the channels; the screen shows them. */
  read(now) {
    this.#follow();
    const roles = this.#roles(now);
    const of = (role) => roles.get(role) ?? 0;
    this.show(of);
    return this.#channels.map((channel) => {
      const { kind, role, index } = channel;
      if (kind === "stick" || kind === "lever" || kind === "pedal") return scaled(channel, of(role));
      if (kind === "function") return scaled(channel, of(PATTERNS[this.#pattern][role]));
      const { value } = this.#settings.get(index);
      return kind === "button" ? Math.max(value, scaled(channel, of(role))) : value;
    });
  }

  /**
   * Take hold of everything where the machine has it now: levers come back from there, what stays stays. So there is no
   * jump when the controls change hands, and whoever only watches sees them move. Gives the values to send.
   */
  pick(now) {
    const roles = new Map();
    for (const channel of this.#channels) {
      const { kind, role, index, moves } = channel;
      const value = this.node.value(moves);
      if (!Number.isFinite(value)) continue;
      if (kind === "stick" || kind === "lever" || kind === "pedal") roles.set(role, unscaled(channel, value));
      else if (kind === "function") roles.set(PATTERNS[this.#pattern][role], unscaled(channel, value));
      else if (this.#settings.get(index).value !== value) this.#settings.get(index).set(value);
    }
    this.keyboard.pick(roles, now);
    return this.read(now);
  }

  show(of) {
    for (const side of ["left", "right"]) this.sticks[side].show([of(`${side}.x`), of(`${side}.y`)]);
    for (const [role, lever] of this.#levers) lever.show(of(role));
  }

  /** Everything that comes back by itself to where it comes back to. */
  neutral() {
    this.keyboard.clear();
    for (const stick of Object.values(this.sticks)) stick.value = [0, 0];
    for (const lever of this.#levers.values()) lever.value = 0;
    this.show(() => 0);
  }
}

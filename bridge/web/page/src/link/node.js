// The node as the page knows it: what it has said of itself, its newest state, and how to ask it for something.

import { Clock } from "./clock.js";
import { ARROWS, PROPS, STATE, TERRAIN, FLAGS, STATES, decodeState } from "./decode.js";

const PATIENCE = 5000; // [ms] for an answer
const ROLES = ["watch", "operate", "admin"];
const KINDS = { [TERRAIN]: "terrain", [ARROWS]: "arrows", [PROPS]: "props" };

export class Node {
  #socket;
  #asked = new Map();
  #next = 1;
  #wanted = [];
  #watched = []; // what the server says the samples are: frames in flight still have those of before

  /** Tells `bus`: clock, hello, scene, state, terrain, arrows, props, event, timing, driver, link, replay, status, cab. */
  constructor(bus, socket) {
    this.bus = bus;
    this.#socket = socket;
    this.hello = null;
    this.state = null; // newest decoded STATE
    this.values = new Float32Array(0); // newest value of every signal, in the order of hello.signals
    this.index = new Map(); // name of a signal to its place there
    this.link = { up: false, why: "connecting" };
    this.heard = performance.now(); // [ms] when the last message came
    this.clock = new Clock(bus, socket);
    this.status = { forced: new Set(), speed: 1, parameters: {} };
    bus.on("text", (message) => this.#text(message));
    bus.on("binary", (buffer) => this.#binary(buffer));
    bus.on("socket", ({ open, why }) => {
      if (!open) this.#lost(why);
    });
  }

  get signals() {
    return this.hello?.signals ?? [];
  }

  get parameters() {
    return this.hello?.parameters ?? [];
  }

  get paused() {
    return this.state !== null && (this.state.flags & FLAGS.paused) !== 0;
  }

  get stateName() {
    return this.state ? STATES[this.state.state] : "–";
  }

  /** The newest value of a signal, or undefined if there is none of that name. */
  value(name) {
    const k = this.index.get(name);
    return k === undefined ? undefined : this.values[k];
  }

  /** Why this page may not do what needs `role`; empty if it may. */
  denied(role = "operate") {
    if (!this.hello) return "not connected";
    if (!this.link.up) return `no word from the node: ${this.link.why}`;
    if (ROLES.indexOf(this.hello.role) >= ROLES.indexOf(role)) return "";
    return `needs the role "${role}"; this page has "${this.hello.role}"`;
  }

  /** Ask for an operation; the promise gives its result or fails with the node's own words. */
  ask(op, fields = {}) {
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      if (!this.#socket.send({ op, id, ...fields })) {
        reject(new Error("not connected"));
        return;
      }
      const timer = setTimeout(() => this.#settle(id, { ok: false, why: `no answer to ${op} within 5 s` }), PATIENCE);
      this.#asked.set(id, { resolve, reject, timer });
    });
  }

  /** Which signals' every sample is wanted. */
  watch(names) {
    this.#wanted = [...names];
    this.#socket.send({ watch: this.#wanted });
  }

  acknowledge(frame) {
    this.#socket.send({ ack: frame });
  }

  /** "take" the controls, move them ({seq, at, values} in the order of the channels), or let go (null). */
  cab(what) {
    return this.#socket.send({ cab: what });
  }

  /** Bytes that the browser has not got rid of yet. */
  get unsent() {
    return this.#socket.unsent;
  }

  /** How old a state that was made at `made` (server's clock) is at a moment [ms] of this page [s]; NaN = not known. */
  age(made, moment) {
    return this.clock.at(moment) - made;
  }

  /** What the node says of itself once a second, or right after something was changed here. */
  async refresh() {
    try {
      this.#heed((await this.ask("status")) ?? {});
    } catch {
      // A recording has no status to give: the page then shows what the stream says.
    }
  }

  #heed(status) {
    const { forced = [], speed, parameters = {} } = status; // who tells no speed has not changed it
    this.status = { ...status, speed, parameters, forced: new Set(Array.isArray(forced) ? forced : Object.keys(forced)) };
    this.bus.tell("status", this.status);
  }

  #text(message) {
    this.heard = performance.now();
    if (message.type === "hello") this.#greet(message);
    else if (message.type === "answer") this.#settle(message.id, message);
    else if (message.type === "status") this.#heed(message);
    else if (message.type === "watching") this.#watched = message.signals;
    else if (message.type === "link") this.#linked(message.up, message.why ?? "");
    else this.bus.tell(message.type, message);
  }

  #greet(hello) {
    this.hello = hello;
    this.index = new Map(hello.signals.map(({ name }, k) => [name, k]));
    this.values = new Float32Array(hello.signals.length).fill(NaN);
    this.state = null;
    this.#linked(true, "");
    this.bus.tell("hello", hello);
    this.#watched = [];
    this.watch(this.#wanted.filter((name) => this.index.has(name)));
    this.refresh();
  }

  #binary(buffer) {
    const kind = new Uint8Array(buffer, 0, 1)[0];
    this.heard = performance.now();
    if (this.hello === null) return;
    if (kind !== STATE) {
      this.bus.tell(KINDS[kind], buffer);
      return;
    }
    const state = decodeState(buffer, this.hello.bodies.length);
    state.arrived = performance.now();
    if (state.latest) this.values.set(state.latest);
    state.names = state.watched === this.#watched.length ? this.#watched : [];
    if (state.count) this.#freshen(state);
    this.state = state;
    this.bus.tell("state", state);
  }

  /** Watched signals are known to the tick: their last sample is newer than the last `latest`. */
  #freshen({ samples, names, count, watched }) {
    const last = (count - 1) * (1 + watched) + 1;
    names.forEach((name, w) => (this.values[this.index.get(name)] = samples[last + w]));
  }

  #linked(up, why) {
    this.link = { up, why };
    this.bus.tell("link", this.link);
  }

  #lost(why) {
    for (const id of [...this.#asked.keys()]) this.#settle(id, { ok: false, why: "the connection was lost" });
    this.#linked(false, why);
  }

  #settle(id, { ok, result, why }) {
    const asked = this.#asked.get(id);
    if (!asked) return;
    this.#asked.delete(id);
    clearTimeout(asked.timer);
    if (ok) asked.resolve(result);
    else asked.reject(new Error(why));
  }
}

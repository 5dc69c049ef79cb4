// Time in hand: pause, single steps, slow motion and reset for a node; scrubbing and playing both ways for a recording.

import { el, enable, write } from "./dom.js";
import { moment, number } from "./format.js";

const SPEEDS = [0.05, 0.1, 0.25, 0.5, 1, 2];
const STEPS = [1, 10, 100];
const UNDER_WAY = 500; // [ms] after a choice was taken that somebody may still tell of the one before

export class TimeBar {
  #node;
  #toasts;
  #scrubbing = false;
  #sought = 0;
  #chosen = -Infinity; // [ms] until when the speed that is shown is the one that was just chosen here

  constructor(node, toasts) {
    this.#node = node;
    this.#toasts = toasts;
    const button = (label, title, onclick) => el("button", { onclick, "data-title": title, title, "aria-label": title }, label);
    this.play = button("❚❚", "Pause (space)", () => this.toggle());
    this.back = button("◀", "Play backwards", () => this.#run(-1));
    this.step = button("▶❚", "Single step (.)", () => this.stepOnce());
    this.count = el("select", { "aria-label": "plant steps at a time" }, STEPS.map((n) => el("option", { value: n }, `${n}×`)));
    this.speed = el("select", { "aria-label": "speed", onchange: () => this.#speed() },
      SPEEDS.map((s) => el("option", { value: s, selected: s === 1 }, s === 1 ? "real time" : `${s}×`)));
    this.reset = button("⟲", "Back to the initial state", () => this.#reset());
    this.scrub = el("input.scrub", {
      type: "range", min: 0, max: 1, step: 0.01, value: 0, "aria-label": "moment of the recording",
      oninput: () => this.#seek(), onchange: () => (this.#scrubbing = false),
    });
    this.moment = el("span.mono.moment");
    this.element = el("div.timebar.panel", { role: "toolbar", "aria-label": "time" },
      this.back, this.play, this.step, this.count, this.speed, this.reset, this.scrub, this.moment);
    node.bus.on("hello", () => this.#adapt());
    node.bus.on("link", () => this.#adapt());
    node.bus.on("status", ({ speed }) => this.#showSpeed(speed));
    node.bus.on("replay", (replay) => this.#replayed(replay));
    this.#adapt();
  }

  #adapt() {
    const replay = this.#node.hello?.replay ?? false;
    for (const [part, shown] of [[this.back, replay], [this.scrub, replay], [this.moment, replay], [this.step, !replay], [this.count, !replay], [this.reset, !replay]])
      part.hidden = !shown;
    const why = this.#node.denied();
    for (const part of [this.back, this.play, this.step, this.count, this.speed, this.reset, this.scrub]) enable(part, why);
  }

  /** Called with each picture: the button shows what it will do. */
  update() {
    const paused = this.#node.hello?.replay ? (this.replay?.paused ?? false) : this.#node.paused;
    write(this.play, paused ? "▶" : "❚❚");
    this.play.classList.toggle("active", paused);
  }

  toggle() {
    const replay = this.#node.hello?.replay;
    const paused = replay ? this.replay?.paused : this.#node.paused;
    if (replay && paused) this.#run(1);
    else this.#toasts.attempt(this.#node.ask(paused ? "resume" : "pause"));
  }

  async stepOnce() {
    if (!this.#node.paused && !(await this.#toasts.attempt(this.#node.ask("pause")))) return;
    this.#toasts.attempt(this.#node.ask("step", { count: Number(this.count.value) }));
  }

  /** A recording, forwards (1) or backwards (-1) at the speed that is chosen. */
  async #run(way) {
    const { ask } = { ask: (...given) => this.#toasts.attempt(this.#node.ask(...given)) };
    if (await ask("speed", { value: way * Number(this.speed.value) })) ask("play");
  }

  /** How fast it goes, either way; a speed that somebody else has chosen becomes a choice of its own. */
  #showSpeed(speed) {
    const size = Math.abs(speed);
    if (!(size > 0) || performance.now() < this.#chosen) return;
    const near = [...this.speed.options].find(({ value }) => Math.abs(Number(value) / size - 1) < 1e-3);
    const option = near ?? el("option", { value: size }, `${number(size)}×`);
    if (!near) this.speed.append(option);
    this.speed.value = option.value;
  }

  async #speed() {
    const way = this.#node.hello?.replay && this.replay?.speed < 0 ? -1 : 1;
    this.#chosen = Infinity;
    const answer = await this.#toasts.attempt(this.#node.ask("speed", { value: way * Number(this.speed.value) }));
    this.#chosen = answer === null ? -Infinity : performance.now() + UNDER_WAY;
  }

  /** A plant cannot be reset while it runs: then it is disarmed first, and runs again afterwards. */
  async #reset() {
    const running = this.#node.stateName === "running";
    const order = running ? ["disarm", "reset", "arm", "run"] : ["reset"];
    for (const op of order) if ((await this.#toasts.attempt(this.#node.ask(op))) === null) return;
    this.#toasts.say("The plant is at its initial state.");
  }

  #seek() {
    this.#scrubbing = true;
    const now = performance.now();
    if (now - this.#sought < 60) return; // as many as can be answered
    this.#sought = now;
    this.#node.ask("seek", { to: Number(this.scrub.value) }).catch((error) => this.#toasts.say(error.message, "bad"));
  }

  #replayed(replay) {
    this.replay = replay;
    this.#showSpeed(replay.speed);
    this.scrub.max = replay.duration;
    if (!this.#scrubbing) this.scrub.value = replay.t;
    write(this.moment, `${moment(replay.t)} of ${moment(replay.duration)}`);
    this.back.classList.toggle("active", !replay.paused && replay.speed < 0);
  }
}

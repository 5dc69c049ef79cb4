// Devices that can be at hand: keys and gamepads. Each gives a table of roles to -1..1; the strongest wins.

/** Role and direction of each key. Shift halves everything. */
export const KEYS = {
  KeyW: ["left.y", 1], KeyS: ["left.y", -1], KeyD: ["left.x", 1], KeyA: ["left.x", -1],
  KeyI: ["right.y", 1], KeyK: ["right.y", -1], KeyL: ["right.x", 1], KeyJ: ["right.x", -1],
  ArrowUp: ["drive", 1], ArrowDown: ["drive", -1], ArrowLeft: ["steer", 1], ArrowRight: ["steer", -1],
  Space: ["brake", 1], KeyR: ["blade", 1], KeyF: ["blade", -1], KeyT: ["outriggers", 1], KeyG: ["outriggers", -1],
  KeyH: ["horn", 1],
};
const RISE = 0.16; // [s] from neutral to the end
const DEAD = 0.08; // of a gamepad's stick about its middle

/** Keys that are held, each moving its lever to the end as fast as a hand would. */
export class Keyboard {
  #held = new Set();
  #at = new Map();
  #last = 0;
  #fine = false;

  constructor() {
    addEventListener("keydown", (event) => this.#key(event, true));
    addEventListener("keyup", (event) => this.#key(event, false));
    addEventListener("blur", () => this.clear());
    this.on = false;
  }

  #key(event, down) {
    this.#fine = event.shiftKey;
    if (!down) this.#held.delete(event.code);
    if (!this.on || !(event.code in KEYS) || /^(SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
    event.preventDefault();
    if (down) this.#held.add(event.code);
  }

  /** Levers that stand somewhere as if keys had brought them there: let go, they come back as fast as a hand would. */
  pick(roles, now) {
    this.#at = new Map([...roles].filter(([, value]) => value !== 0));
    this.#last = now;
  }

  clear() {
    this.#held.clear();
    this.#at.clear();
  }

  read(now) {
    const most = Math.min(0.1, (now - this.#last) / 1e3) / RISE;
    this.#last = now;
    const wanted = new Map();
    for (const code of this.#held) wanted.set(KEYS[code][0], (wanted.get(KEYS[code][0]) ?? 0) + KEYS[code][1] * (this.#fine ? 0.5 : 1));
    for (const role of new Set([...wanted.keys(), ...this.#at.keys()])) {
      const [from, to] = [this.#at.get(role) ?? 0, wanted.get(role) ?? 0];
      const next = Math.abs(to - from) <= most ? to : from + Math.sign(to - from) * most;
      if (next === 0 && to === 0) this.#at.delete(role);
      else this.#at.set(role, next);
    }
    return this.#at;
  }
}

const live = (value) => (Math.abs(value) < DEAD ? 0 : (Math.sign(value) * (Math.abs(value) - DEAD)) / (1 - DEAD));

/**
 * The first gamepad of the standard layout; its sticks give less than 0 when pushed away, a machine's more. One of
 * another layout is named and not used: nobody knows which of its axes rests where.
 */
export function readGamepad() {
  const roles = new Map();
  const pads = [...(navigator.getGamepads?.() ?? [])].filter((candidate) => candidate?.connected);
  const pad = pads.find(({ mapping }) => mapping === "standard");
  if (!pad) return { name: pads.length ? `${pads[0].id} (not used: no standard layout)` : "", roles };
  const button = (k) => pad.buttons[k]?.value ?? 0;
  const axis = (k) => live(pad.axes[k] ?? 0);
  roles.set("left.x", axis(0)).set("left.y", -axis(1)).set("right.x", axis(2)).set("right.y", -axis(3));
  roles.set("drive", button(7) - button(6)).set("brake", button(0)).set("horn", button(1));
  roles.set("steer", button(14) - button(15)).set("blade", button(12) - button(13)).set("outriggers", button(3) - button(2));
  return { name: pad.id, roles };
}

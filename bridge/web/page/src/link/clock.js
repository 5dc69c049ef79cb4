// How far the server's clock is from this page's, asked for over the stream as NTP does: half of the round trip is
// taken for the way back, and of the last answers the one that came quickest is believed. What is left of error is half
// of its round trip at most. So the age of a picture counts the way here, and the waiting in the browser's own queue.

const EVERY = 2000; // [ms]
const FIRST = 5; // questions in a row at the beginning
const KEPT = 30; // answers

export class Clock {
  #kept = [];
  #socket;

  constructor(bus, socket) {
    this.#socket = socket;
    bus.on("socket", ({ open }) => {
      this.#kept = []; // the next server may be another one
      if (open) for (let k = 0; k < FIRST; k++) setTimeout(() => this.#ask(), 50 * k);
    });
    bus.on("clock", (answer) => this.#take(answer));
    setInterval(() => this.#ask(), EVERY);
  }

  #ask() {
    this.#socket.send({ clock: performance.now() });
  }

  #take({ page, server }) {
    const now = performance.now();
    this.#kept.push({ trip: now - page, apart: server - (0.5 * (page + now)) / 1e3 });
    if (this.#kept.length > KEPT) this.#kept.shift();
  }

  get #best() {
    return this.#kept.reduce((best, one) => (best === null || one.trip < best.trip ? one : best), null);
  }

  /** The most that it may be wrong [s]; infinite as long as nothing is known. */
  get error() {
    return this.#best ? this.#best.trip / 2e3 : Infinity;
  }

  /** The server's clock [s] at a moment [ms] of this page; NaN as long as nothing is known. */
  at(moment) {
    return this.#best ? moment / 1e3 + this.#best.apart : NaN;
  }
}

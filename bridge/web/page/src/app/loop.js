// The page's heartbeat. A picture is begun only when the one before is finished (a fence tells when), and the state
// that it showed is acknowledged only then: the server sends the next one, always the newest. So nothing piles up,
// neither in the graphics card's queue nor on the way, and a slow page shows few pictures but no old ones.
//
// A state that came while the last picture was being made has waited since. If it has waited long, the one that the
// acknowledgement has just called for is worth waiting for: it is younger by a whole picture.

const KEPT = 1000; // pictures remembered
const POLL = 3; // [ms]
const WAITED = 30; // [ms] a state may have lain here and still be drawn at once
const PATIENCE = 60; // [ms] that a younger one is waited for

export class Loop {
  #node;
  #stage;
  #router;
  #acknowledged = -1;
  #called = 0; // [ms] when the last acknowledgement went out
  #pending = null; // the picture that is being made

  constructor(node, stage, router) {
    this.#node = node;
    this.#stage = stage;
    this.#router = router;
    this.drawn = null; // newest state that has been drawn
    this.frame = -1;
    this.ages = []; // [s] of the last states, when their pictures were finished
    this.pictures = []; // of all: when it was finished [ms], and how old it was then [s]
    this.fps = 0;
    this.last = performance.now();
    node.bus.on("hello", () => {
      this.#acknowledged = -1;
      this.drawn = null;
      this.frame = -1;
    });
  }

  start() {
    requestAnimationFrame((now) => this.#turn(now));
  }

  /** Median and the worst but one percent of the ages that are remembered [s]. */
  spread() {
    const sorted = this.ages.slice(-300).sort((a, b) => a - b);
    const at = (x) => sorted[Math.min(sorted.length - 1, Math.floor(x * sorted.length))];
    return { p50: at(0.5), p99: at(0.99) };
  }

  #turn(now) {
    requestAnimationFrame((next) => this.#turn(next));
    if (this.#pending) return;
    const began = performance.now();
    const waited = began - (this.#node.state?.arrived ?? began);
    if (waited > WAITED && began - this.#called < PATIENCE) return;
    const page = this.#router.page;
    const made = this.#stage.move(began);
    const state = this.#node.state;
    if (page.stage) this.#stage.draw();
    page.update?.(now);
    this.#pending = { state, made, fence: page.stage && this.#stage.renderer ? this.#fence() : null };
    setTimeout(() => this.#finish(), 0);
  }

  #fence() {
    const gl = this.#stage.renderer.getContext();
    const sync = gl.fenceSync(gl.SYNC_GPU_COMMANDS_COMPLETE, 0);
    gl.flush();
    return sync;
  }

  #finish() {
    const { state, made, fence } = this.#pending;
    if (fence) {
      const gl = this.#stage.renderer.getContext();
      if (!gl.isContextLost() && gl.getSyncParameter(fence, gl.SYNC_STATUS) !== gl.SIGNALED) {
        setTimeout(() => this.#finish(), POLL);
        return;
      }
      gl.deleteSync(fence);
    }
    this.#pending = null;
    const now = performance.now();
    const interval = Math.max(1, now - this.last);
    this.last = now;
    this.fps = this.fps ? 1 / (0.9 / this.fps + 0.1 * interval / 1e3) : 1e3 / interval;
    const newest = this.#node.state;
    // A state of a node that is gone by now is nobody's to acknowledge.
    if (!state || newest === null) return;
    const age = this.#node.age(made, now);
    if (Number.isFinite(age)) {
      this.pictures.push([now, age]);
      if (this.pictures.length > KEPT) this.pictures.shift();
    }
    if (state.frame !== this.frame) {
      this.drawn = state;
      this.frame = state.frame;
      if (Number.isFinite(age)) this.ages.push(age);
      if (this.ages.length > KEPT) this.ages.shift();
    }
    // One that came meanwhile is acknowledged with it: it will be passed over for the next.
    if (newest.frame === this.#acknowledged) return;
    this.#acknowledged = newest.frame;
    this.#called = now;
    this.#node.acknowledge(newest.frame);
  }
}

// How much the picture may cost. A graphics card draws everything at the screen's own resolution. Where the processor
// has to do its work, the picture is made plainly from the start: no smoothed edges (they double the cost), every
// second sample of the ground, no reflections, no grain, a sky that is coloured at its corners only (each was a quarter of
// a picture), a smaller map of shadows that is not drawn anew each time. And wherever pictures come
// slowly, resolution goes down step by step, and up again when there is time. `?quality=full` in the address asks for all
// of it whatever it costs: for a still picture.

const SLOW = { card: 60, plain: 130 }; // [ms] between pictures that is too much
const FAST = { card: 24, plain: 60 }; // [ms] that leaves room for more
const BEGUN = 12; // pictures before the first is judged
const JUDGED = 10; // pictures that are judged together
const PIXELS = [2, 1, 0.8, 0.65, 0.5, 0.4]; // of the picture per pixel of the page
const SOFTWARE = /swiftshader|llvmpipe|softpipe|software|basic render/i;

/** Whether WebGL is drawn by the processor. */
function inSoftware() {
  const gl = document.createElement("canvas").getContext("webgl2");
  if (!gl) return false;
  const about = gl.getExtension("WEBGL_debug_renderer_info");
  const name = about ? gl.getParameter(about.UNMASKED_RENDERER_WEBGL) : "";
  gl.getExtension("WEBGL_lose_context")?.loseContext();
  return SOFTWARE.test(name);
}

export class Quality {
  #renderer = null;
  #last = 0;
  #count = 0;
  #since = 0; // pictures at this level
  #spent = 0; // [ms] on the last of them, those that are counted

  constructor() {
    this.full = new URLSearchParams(location.search).get("quality") === "full";
    this.plain = !this.full && inSoftware();
    this.antialias = !this.plain;
    this.shadowSize = this.plain ? 1024 : this.full ? 4096 : 2048;
    this.shadowEvery = this.plain ? 3 : 1; // pictures
    this.reflect = !this.plain;
    this.stride = this.plain ? 2 : 1; // of the ground's samples
    this.best = devicePixelRatio > 1 ? 0 : 1;
    this.level = this.plain ? 2 : this.best;
  }

  attach(renderer) {
    this.#renderer = renderer;
    this.#apply();
  }

  #apply() {
    this.#since = this.#spent = 0;
    this.#renderer.setPixelRatio(Math.min(PIXELS[this.level], devicePixelRatio));
  }

  /** Before a picture, because a new resolution empties the canvas. */
  before() {
    const now = performance.now();
    if (this.#last) this.#adapt(Math.min(now - this.#last, 1000));
    this.#last = now;
    this.#renderer.shadowMap.autoUpdate = this.shadowEvery === 1;
    if (this.#count++ % this.shadowEvery === 0) this.#renderer.shadowMap.needsUpdate = true;
  }

  /** By the mean of JUDGED pictures in a row at this resolution. The first of all are those that shaders are compiled for. */
  #adapt(interval) {
    if (this.full || this.#count < BEGUN) return;
    this.#spent += interval;
    if (++this.#since % JUDGED) return;
    const kind = this.plain ? "plain" : "card";
    const mean = this.#spent / JUDGED;
    this.#spent = 0;
    if (mean > SLOW[kind] && this.level < PIXELS.length - 1) this.level++;
    else if (mean < FAST[kind] && this.#since > 200 && this.level > this.best) this.level--;
    else return;
    this.#apply();
  }
}

// Motion between frames. While the screen is drawn more often than frames come, the page shows a moment a little in
// the past and blends the two frames around it; the price is about one frame's time of latency. A page that cannot
// draw as fast as frames come shows the newest one at once: blending would only make it later.

const SLOWEST = 45; // [ms] between drawn pictures, above which nothing is blended
const LONGEST = 120; // [ms] between frames, above which the two belong to different motions

export class Interpolator {
  #before = null;
  #after = null;
  #interval = 16.7; // [ms] smoothed time between frames
  #drawing = 16.7; // [ms] smoothed time between pictures
  #drawn = 0;
  #poses = new Float32Array(0);

  enabled = true;

  reset() {
    [this.#before, this.#after] = [null, null];
  }

  take(state) {
    if (this.#after) this.#interval += 0.1 * (Math.min(state.arrived - this.#after.arrived, LONGEST) - this.#interval);
    this.#before = this.#after;
    this.#after = state;
  }

  /** What to draw at `now`: poses, and when what they show was made [s, server's clock]; null before the first frame. */
  at(now) {
    this.#drawing += 0.1 * (Math.min(now - this.#drawn, 1000) - this.#drawing);
    this.#drawn = now;
    const [a, b] = [this.#before, this.#after];
    if (!b) return null;
    const span = a ? b.arrived - a.arrived : 0;
    const smooth = this.enabled && a && this.#drawing < SLOWEST && span < LONGEST && a.poses.length === b.poses.length;
    // Played backwards or reset: the two frames are no motion to blend.
    if (!smooth || b.t < a.t || span <= 0) return { poses: b.poses, made: b.made };
    const x = Math.min(1, Math.max(0, (now - b.arrived) / this.#interval));
    return { poses: this.#blend(a.poses, b.poses, x), made: a.made + x * (b.made - a.made) };
  }

  #blend(a, b, x) {
    if (this.#poses.length !== a.length) this.#poses = new Float32Array(a.length);
    const out = this.#poses;
    for (let k = 0; k < a.length; k += 7) {
      for (let c = 0; c < 3; c++) out[k + c] = a[k + c] + x * (b[k + c] - a[k + c]);
      blendTurn(a, b, x, k + 3, out);
    }
    return out;
  }
}

/** From one quaternion to the other the short way round, at even speed (slerp). */
function blendTurn(a, b, x, k, out) {
  let dot = 0;
  for (let c = 0; c < 4; c++) dot += a[k + c] * b[k + c];
  const sign = dot < 0 ? -1 : 1;
  const angle = Math.acos(Math.min(1, sign * dot));
  const even = angle > 1e-3;
  const u = even ? Math.sin((1 - x) * angle) / Math.sin(angle) : 1 - x;
  const v = sign * (even ? Math.sin(x * angle) / Math.sin(angle) : x);
  for (let c = 0; c < 4; c++) out[k + c] = u * a[k + c] + v * b[k + c];
}

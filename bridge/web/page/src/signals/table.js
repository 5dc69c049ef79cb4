// All samples of the watched signals: one column of times, one of values per signal, the oldest rows overwritten by
// the newest. Plots and exports are cut from here.

const ROWS = 131072; // two minutes at 1 kHz

export class Table {
  #times = new Float64Array(ROWS);
  #columns = new Map();
  #next = 0; // rows ever written

  get length() {
    return Math.min(this.#next, ROWS);
  }

  /** Time of the newest row [s]; NaN if there is none. */
  get newest() {
    return this.#next ? this.#times[(this.#next - 1) % ROWS] : NaN;
  }

  clear() {
    this.#next = 0;
    this.#columns.clear();
  }

  /** Take the samples of a frame. A time that goes back (reset, seek) begins anew: lines never run backwards. */
  take({ t, names, count, samples, watched }) {
    if (!names.length || !count) return;
    for (const name of names) {
      if (!this.#columns.has(name)) this.#columns.set(name, new Float32Array(ROWS).fill(NaN));
    }
    const columns = names.map((name) => this.#columns.get(name));
    const idle = [...this.#columns].filter(([name]) => !names.includes(name)).map(([, column]) => column);
    for (let k = 0; k < count; k++) {
      const from = k * (1 + watched);
      const time = t + samples[from];
      if (time <= this.newest - 1e-3) this.#next = 0;
      const row = this.#next++ % ROWS;
      this.#times[row] = time;
      columns.forEach((column, w) => (column[row] = samples[from + 1 + w]));
      for (const column of idle) column[row] = NaN;
    }
  }

  /** First row at or after a time, counted from the oldest. */
  #find(time) {
    let [low, high] = [0, this.length];
    const oldest = this.#next - this.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#times[(oldest + middle) % ROWS] < time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Calls `visit(time, values)` for every row from `from` to `to` [s]; `values` is used again for the next. */
  each(names, from, to, visit) {
    const columns = names.map((name) => this.#columns.get(name));
    const values = new Array(names.length);
    const oldest = this.#next - this.length;
    for (let k = this.#find(from); k < this.length; k++) {
      const row = (oldest + k) % ROWS;
      if (this.#times[row] > to) break;
      columns.forEach((column, c) => (values[c] = column ? column[row] : NaN));
      visit(this.#times[row], values);
    }
  }

  /**
   * What a plot `width` pixels wide shows: times and one list per signal, with null where there is nothing. Where
   * there are more rows than pixels, each stretch is drawn by its least and its largest value, so no spike is lost.
   */
  cut(names, from, to, width) {
    const rows = this.#find(to) - this.#find(from);
    const stretch = rows > 2 * width ? (to - from) / width : 0;
    const out = [[], ...names.map(() => [])];
    if (!stretch) {
      this.each(names, from, to, (time, values) => {
        out[0].push(time);
        values.forEach((value, c) => out[c + 1].push(Number.isFinite(value) ? value : null));
      });
      return out;
    }
    let [begun, low, high] = [-Infinity, [], []];
    const close = () => {
      if (begun === -Infinity) return;
      out[0].push(begun, begun + 0.5 * stretch);
      names.forEach((_, c) => out[c + 1].push(low[c] > high[c] ? null : low[c], low[c] > high[c] ? null : high[c]));
    };
    this.each(names, from, to, (time, values) => {
      if (time >= begun + stretch) {
        close();
        begun = Math.floor(time / stretch) * stretch;
        [low, high] = [values.map(() => Infinity), values.map(() => -Infinity)];
      }
      values.forEach((value, c) => {
        if (value < low[c]) low[c] = value;
        if (value > high[c]) high[c] = value;
      });
    });
    close();
    return out;
  }

  /** Every row as text, for spreadsheets. */
  csv(names, from, to) {
    const lines = [["t [s]", ...names].join(",")];
    this.each(names, from, to, (time, values) => lines.push([time.toFixed(6), ...values.map((v) => (Number.isFinite(v) ? v : ""))].join(",")));
    return `${lines.join("\n")}\n`;
  }
}

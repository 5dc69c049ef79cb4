// Numbers as people read them.

/** About four digits, millions as such, an exponent only for what is larger or smaller still. */
export function number(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  const size = Math.abs(value);
  let text;
  if (size === 0) text = "0";
  else if (size >= 1e12 || size < 1e-4) text = value.toExponential(2);
  else if (size >= 1e9) text = `${(value / 1e9).toPrecision(4)} G`;
  else if (size >= 1e6) text = `${(value / 1e6).toPrecision(4)} M`;
  else text = value.toFixed(Math.max(0, Math.min(4, 3 - Math.floor(Math.log10(size)))));
  return text.replace("-", "−");
}

/** A unit as it is shown: what is a pure number has none. */
export const unitOf = ({ unit }) => (!unit || unit === "1" ? "" : unit);

/** So many digits, and never a minus before nothing. */
export function fixed(value, digits) {
  const text = value.toFixed(digits);
  return Number(text) === 0 ? text.replace("-", "") : text;
}

/** Seconds as milliseconds. */
export const milliseconds = (s) => (Number.isFinite(s) ? `${(s * 1e3).toFixed(s < 0.0995 ? 1 : 0)} ms` : "–");

/** Microseconds in the unit that suits them. */
export function microseconds(us) {
  if (!Number.isFinite(us)) return "–";
  if (us < 1e3) return `${us.toFixed(us < 10 ? 2 : us < 100 ? 1 : 0)} µs`;
  return us < 1e6 ? `${(us / 1e3).toFixed(2)} ms` : `${(us / 1e6).toFixed(2)} s`;
}

/** Simulated time: 83.214 s, 12:05.3 from ten minutes on. */
export function moment(t) {
  if (!Number.isFinite(t)) return "–";
  if (t < 600) return `${t.toFixed(3)} s`;
  const rest = (t % 60).toFixed(1).padStart(4, "0");
  return `${Math.floor(t / 60)}:${rest}`;
}

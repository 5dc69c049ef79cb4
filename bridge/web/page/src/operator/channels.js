// Which control moves which channel of the cab: found by the channel's name, so that a cab which nobody here has heard
// of gets a panel too. What is no lever becomes a switch, a choice or a slider.
//
//   left.x, left.y, right.x, right.y     the two sticks as they are; away and right are positive
//   swing, stick, bucket, boom           functions: the pattern (ISO or SAE) says which stick's axis moves them
//   drive, steer, brake, blade, ...      levers and pedals that come back by themselves
//   throttle                             a lever that stays where it is put
//   gear, *mode, pattern                 choices between whole numbers
//   horn                                 while it is pressed
//   whatever else                        0 to 1: a switch; otherwise a slider that stays

const STICK = /(^|\.|_)(left|right)[._]?(?:stick|lever|joystick)?[._]?([xy])$/i;

/** Axes of the sticks by function: ISO 10968 and the pattern of SAE, which swaps boom and stick. */
export const PATTERNS = {
  ISO: { swing: "left.x", stick: "left.y", bucket: "right.x", boom: "right.y" },
  SAE: { swing: "left.x", boom: "left.y", bucket: "right.x", stick: "right.y" },
};

const KINDS = [
  [/(^|\.|_)pattern$/i, "choice", "pattern"],
  [/(^|\.|_)(swing|slew)$/i, "function", "swing"],
  [/(^|\.|_)(stick|arm|dipper)$/i, "function", "stick"],
  [/(^|\.|_)bucket$/i, "function", "bucket"],
  [/(^|\.|_)boom$/i, "function", "boom"],
  [/(^|\.|_)(drive|travel)$/i, "lever", "drive"],
  [/(^|\.|_)(steer|steering)$/i, "lever", "steer"],
  [/(^|\.|_)blade$/i, "lever", "blade"],
  [/(^|\.|_)outriggers?$/i, "lever", "outriggers"],
  [/(^|\.|_)brake$/i, "pedal", "brake"],
  [/(^|\.|_)(throttle|engine|rpm)$/i, "slider", "throttle"],
  [/(^|\.|_)horn$/i, "button", "horn"],
  [/(gear|mode)$/i, "choice", ""],
];

/** What one channel is: `kind` and, for those that keys and gamepads know, `role`. */
export function classify({ name, low = -1, high = 1 }) {
  const stick = STICK.exec(name);
  if (stick) return { kind: "stick", role: `${stick[2]}.${stick[3]}`.toLowerCase() };
  for (const [pattern, kind, role] of KINDS) if (pattern.test(name)) return { kind, role };
  return { kind: low === 0 && high === 1 ? "switch" : "slider", role: "" };
}

/** The channels of a cab with their kinds, limits made whole. */
export function channelsOf(cab) {
  return (cab?.channels ?? []).map((channel, index) => {
    const low = Number.isFinite(channel.low) ? channel.low : -1;
    const high = Number.isFinite(channel.high) ? channel.high : 1;
    const neutral = Number.isFinite(channel.default) ? channel.default : 0;
    return { ...channel, ...classify({ ...channel, low, high }), low, high, neutral, index };
  });
}

/** The other way round: where a lever stands that gives this value. */
export function unscaled({ low, high, neutral }, value) {
  const way = value >= neutral ? high - neutral : neutral - low;
  return way > 0 ? Math.max(-1, Math.min(1, (value - neutral) / way)) : 0;
}

/** A lever's -1 to 1 in the channel's own limits: 0 is its neutral value. */
export function scaled({ low, high, neutral }, value) {
  return value >= 0 ? neutral + value * (high - neutral) : neutral + value * (neutral - low);
}

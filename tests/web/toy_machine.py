"""A toy excavator for the page's tests: it drives nowhere, swings, digs a trench and tells everything about itself.

Nothing here is physics: joint angles are functions of time, and the ground is lowered where the bucket's tip is below
it. What matters is that all of it is known exactly, so that a test can compare a page with it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Entry = dict[str, Any]

YELLOW, DARK, STEEL, GLASS = (0.95, 0.68, 0.10), (0.13, 0.14, 0.15), (0.62, 0.64, 0.66), (0.35, 0.50, 0.58)
SOIL, ORANGE, WOOD = (0.40, 0.30, 0.20), (0.95, 0.45, 0.10), (0.62, 0.47, 0.30)

BODIES = tuple(f"excavator.{name}" for name in ("undercarriage", "uppercarriage", "boom", "stick", "bucket"))
CHASSIS, HOUSE, BOOM, STICK, BUCKET = BODIES
PROPS = tuple(f"fence.{k}" for k in range(8))
BOOM_LONG, STICK_LONG, BUCKET_LONG = 5.6, 2.9, 1.4  # [m]
GRID = 256
SPACING = 0.1  # [m]
CORNER = (-0.5 * (GRID - 1) * SPACING + 4.0, -0.5 * (GRID - 1) * SPACING, 0.0)
TILE = 16

SIGNALS = (
    *(
        (f"{BOOM}.angle", "rad"),
        ("excavator.boom_pin.pull", "N"),
        (f"{STICK}.angle", "rad"),
        ("excavator.stick_pin.pull", "N"),
    ),
    *((f"{BUCKET}.angle", "rad"), ("excavator.bucket_pin.pull", "N"), (f"{BUCKET}.fill", ""), (f"{BUCKET}.load", "kg")),
    *(("excavator.swing.angle", "rad"), ("excavator.engine.speed", "rad/s"), ("excavator.speed", "m/s")),
    *(("excavator.blade.angle", "rad"), ("excavator.outriggers.angle", "rad"), ("excavator.tilt.pitch", "rad")),
    *(("excavator.tilt.roll", "rad"), ("excavator.stability", "m"), ("excavator.hydraulics.pressure", "Pa")),
    *((f"excavator.wheel_{where}.load", "N") for where in ("front_left", "front_right", "rear_left", "rear_right")),
    *(("excavator.flag.overload", ""), ("excavator.flag.relief", "")),
)
CHANNELS = {  # name to low, high, default
    **dict.fromkeys(("left.x", "left.y", "right.x", "right.y", "drive", "steer"), (-1.0, 1.0, 0.0)),
    **dict.fromkeys(("blade", "outriggers"), (-1.0, 1.0, 0.0)),
    **dict.fromkeys(("brake", "pattern", "parking", "horn"), (0.0, 1.0, 0.0)),
    **{"throttle": (0.0, 1.0, 0.4), "gear": (1.0, 3.0, 1.0), "steer_mode": (0.0, 2.0, 0.0), "wiper": (0.0, 1.0, 0.0)},
}
INPUTS = tuple(f"excavator.{name}" for name in CHANNELS)


def box(body: str, size: tuple[float, ...], p: tuple[float, ...], colour: tuple[float, ...], **more: Any) -> Entry:
    return shape(body, "box", size, p, colour, **more)


def shape(
    body: str, kind: str, size: tuple[float, ...], p: tuple[float, ...], colour: tuple[float, ...], **more: Any
) -> Entry:
    return {"body": body, "kind": kind, "size": list(size), "p": list(p), "colour": list(colour)} | more


ACROSS = [math.cos(math.pi / 4), math.sin(math.pi / 4), 0.0, 0.0]  # a cylinder's axis along y


def mound() -> Entry:
    """A heap over a square, as a surface: what lies in the bucket."""
    n = 9
    xs = np.linspace(-0.6, 0.6, n)
    vertices = [(x, y, 0.45 * (1 - (x / 0.6) ** 2) * (1 - (y / 0.6) ** 2)) for x in xs for y in xs]
    faces = []
    for i in range(n - 1):
        for j in range(n - 1):
            a = i * n + j
            faces += [a, a + n, a + n + 1, a, a + n + 1, a + 1]
    return {"kind": "surface", "name": "mound", "vertices": np.ravel(vertices).tolist(), "faces": faces}


def scene() -> list[Entry]:
    """Shapes of the machine, a fence, a seat and two joint frames."""
    beam = [math.cos(0.09), 0.0, math.sin(-0.09), 0.0]
    shapes = [
        mound(),
        box(CHASSIS, (4.4, 2.3, 0.7), (0, 0, 0), YELLOW),
        box(CHASSIS, (0.25, 2.5, 0.7), (2.75, 0, -0.35), STEEL, finish="steel"),
        shape(CHASSIS, "cylinder", (0.85, 0.35), (0, 0, 0.5), DARK, finish="steel"),
        box(HOUSE, (3.7, 2.5, 0.35), (-0.5, 0, 0.05), DARK),
        box(HOUSE, (1.7, 2.5, 1.25), (-1.5, 0, 0.75), YELLOW),
        box(HOUSE, (1.6, 0.95, 1.2), (0.15, -0.75, 0.75), YELLOW),
        box(HOUSE, (1.55, 0.95, 1.6), (0.5, 0.75, 1.05), GLASS, finish="glass"),
        box(HOUSE, (1.65, 1.02, 0.12), (0.48, 0.75, 1.9), DARK),
        shape(HOUSE, "cylinder", (0.09, 0.7), (-1.7, -0.6, 1.7), STEEL, finish="steel"),
        box(BOOM, (3.2, 0.42, 0.6), (1.5, 0, 0.24), YELLOW, q=beam),
        box(BOOM, (3.0, 0.40, 0.5), (4.2, 0, 0.24), YELLOW, q=[beam[0], 0, -beam[2], 0]),
        shape(BOOM, "cylinder", (0.3, 0.7), (0, 0, 0), DARK, q=ACROSS, finish="steel"),
        shape(BOOM, "cylinder", (0.2, 0.6), (BOOM_LONG, 0, 0), DARK, q=ACROSS, finish="steel"),
        {"kind": "strut", "body": HOUSE, "p": [0.9, 0.35, 0.1], "body_b": BOOM, "p_b": [2.6, 0.35, 0.1]}
        | {"size": [0.12, 0.07, 1.4], "colour": list(YELLOW)},
        {"kind": "strut", "body": BOOM, "p": [2.6, 0, 0.75], "body_b": STICK, "p_b": [-0.4, 0, 0.5]}
        | {"size": [0.12, 0.07, 1.9], "colour": list(YELLOW)},
        box(STICK, (STICK_LONG, 0.34, 0.42), (0.5 * STICK_LONG - 0.1, 0, 0.05), YELLOW),
        shape(STICK, "cylinder", (0.16, 0.55), (STICK_LONG, 0, 0), DARK, q=ACROSS, finish="steel"),
        box(BUCKET, (1.2, 1.2, 0.08), (0.65, 0, -0.35), STEEL, finish="steel"),
        box(BUCKET, (0.08, 1.2, 0.8), (0.05, 0, 0.0), STEEL, finish="steel"),
        box(BUCKET, (1.2, 0.06, 0.7), (0.6, 0.6, -0.05), STEEL, finish="steel"),
        box(BUCKET, (1.2, 0.06, 0.7), (0.6, -0.6, -0.05), STEEL, finish="steel"),
        *(box(BUCKET, (0.3, 0.1, 0.06), (1.35, y, -0.35), DARK, finish="steel") for y in (-0.45, -0.15, 0.15, 0.45)),
        {"body": BUCKET, "kind": "mesh", "mesh": "mound", "p": [0.65, 0, -0.28], "q": [1, 0, 0, 0]}
        | {"colour": list(SOIL), "finish": "soil", "signal": f"{BUCKET}.fill", "scale": [0, 0, 1]},
        {"body": HOUSE, "kind": "camera", "name": "seat", "p": [0.75, 0.75, 1.35], "q": [0.995, 0, 0.0998, 0]},
        {
            "kind": "frame",
            "name": "excavator.boom_pin",
            "body": HOUSE,
            "body_b": BOOM,
            "p": [0.75, 0, 0.45],
            "q": ACROSS,
        },
        {
            "kind": "frame",
            "name": "excavator.stick_pin",
            "body": BOOM,
            "body_b": STICK,
            "p": [BOOM_LONG, 0, 0],
            "q": ACROSS,
        },
        {"body": "", "kind": "plane", "size": [], "p": [0, 0, 0], "q": [1, 0, 0, 0], "colour": [0.5, 0.45, 0.38]},
    ]
    for x in (-1.45, 1.45):
        for y in (-1.1, 1.1):
            shapes += [
                shape(CHASSIS, "cylinder", (0.62, 0.5), (x, y, -0.3), DARK, q=ACROSS, finish="rubber"),
                shape(CHASSIS, "cylinder", (0.32, 0.54), (x, y, -0.3), YELLOW, q=ACROSS),
            ]
    for name in PROPS:
        shapes += [
            box(name, (0.1, 2.0, 0.12), (0, 0, 0.9), ORANGE),
            box(name, (0.1, 2.0, 0.12), (0, 0, 0.5), (0.9, 0.9, 0.88)),
            box(name, (0.12, 0.12, 1.1), (0, -0.85, 0.55), WOOD, finish="wood"),
            box(name, (0.12, 0.12, 1.1), (0, 0.85, 0.55), WOOD, finish="wood"),
        ]
    return shapes


def turn(axis: int, angle: float) -> NDArray[np.float64]:
    q = np.zeros(4)
    q[0], q[1 + axis] = math.cos(0.5 * angle), math.sin(0.5 * angle)
    return q


def times(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    w = a[0] * b[0] - a[1:] @ b[1:]
    return np.concatenate([[w], a[0] * b[1:] + b[0] * a[1:] + np.cross(a[1:], b[1:])])


def turned(q: NDArray[np.float64], v: tuple[float, float, float]) -> NDArray[np.float64]:
    return np.array(v) + 2 * np.cross(q[1:], np.cross(q[1:], v) + q[0] * np.array(v))


class ToyMachine:
    """The machine at a time; `advance` goes on."""

    def __init__(self) -> None:
        self.t = 0.0
        self.boom_drive = 0.0  # turned by the cab's boom channel [rad]
        x = CORNER[0] + SPACING * np.arange(GRID)[:, None]
        y = CORNER[1] + SPACING * np.arange(GRID)[None, :]
        waves = 0.10 * np.sin(0.5 * x) * np.cos(0.35 * y) + 0.03 * np.sin(2.1 * x + 1.3 * y)
        calm = 1.0 / (1.0 + np.exp(-(np.hypot(x, y) - 4.0)))  # flat where the machine stands
        heap = 1.5 * np.exp(-((x - 3.0) ** 2 + (y - 6.5) ** 2) / 3.5)
        rim = np.clip((0.5 * (GRID - 1) * SPACING - np.maximum(abs(x - 4.0), abs(y))) / 2.0, 0.0, 1.0)
        self.heights = ((waves * calm + heap) * rim).astype(np.float32)
        self.stamps = np.ones((GRID // TILE, GRID // TILE), np.int64)
        self.poses = np.zeros((len(BODIES), 7), np.float32)
        self.fill = 0.0
        self.advance(0.0)

    def advance(self, dt: float, boom: float = 0.0) -> None:
        self.t += dt
        self.boom_drive += 0.4 * boom * dt
        phase = 2 * math.pi * self.t / 12.0
        self.swing = 0.9 * math.sin(0.5 * phase)
        self.angles = (
            -0.42 + 0.22 * math.sin(phase) + self.boom_drive,
            1.35 + 0.35 * math.sin(phase + 0.9),
            0.75 + 0.7 * math.sin(phase + 1.6),
        )
        q, p = turn(2, 0.0), np.array([0.0, 0.0, 0.95])
        self._pose(0, p, q)
        q, p = times(q, turn(2, self.swing)), p + np.array([0.0, 0.0, 0.7])
        self._pose(1, p, q)
        for k, (arm, angle) in enumerate(
            zip(((0.75, 0.0, 0.45), (BOOM_LONG, 0.0, 0.0), (STICK_LONG, 0.0, 0.0)), self.angles, strict=True)
        ):
            p = p + turned(q, arm)
            q = times(q, turn(1, angle))
            self._pose(2 + k, p, q)
        self.tip = p + turned(q, (BUCKET_LONG, 0.0, -0.35))
        self._dig()

    def _pose(self, k: int, p: NDArray[np.float64], q: NDArray[np.float64]) -> None:
        self.poses[k] = [*p, *q]

    def _dig(self) -> None:
        """Lower the ground to the tip within the bucket's width; stamps tell which tiles."""
        i0, j0 = ((self.tip[:2] - CORNER[:2]) / SPACING).round().astype(int)
        dug = 0.0
        for i in range(max(0, i0 - 6), min(GRID, i0 + 7)):
            for j in range(max(0, j0 - 6), min(GRID, j0 + 7)):
                if math.hypot(i - i0, j - j0) <= 6.5 and self.heights[i, j] > self.tip[2]:
                    dug += float(self.heights[i, j]) - self.tip[2]
                    self.heights[i, j] = np.float32(max(self.tip[2], float(self.heights[i, j]) - 0.02))
                    self.stamps[i // TILE, j // TILE] += 1
        self.digging = dug > 0.0
        self.fill = min(1.0, self.fill + 0.02) if self.digging else max(0.0, self.fill - 0.004)

    def arrows(self) -> NDArray[np.float32]:
        out = [[x, y, 0.0, 0.0, 0.0, 48e3 + 6e3 * math.sin(self.t)] for x in (-1.45, 1.45) for y in (-1.1, 1.1)]
        if self.digging:
            out.append([*self.tip, -30e3 * math.cos(self.swing), -30e3 * math.sin(self.swing), 22e3])
        return np.array(out, np.float32)

    def props(self) -> NDArray[np.float32]:
        """A fence in a row; the last panel stands askew."""
        out = [[11.0, -7.2 + 2.06 * k, 0.0, 1.0, 0.0, 0.0, 0.0] for k in range(len(PROPS))]
        out[-1][3:] = turn(2, 0.5).tolist()
        return np.array(out, np.float32)

    def values(self, inputs: dict[str, float]) -> NDArray[np.float32]:
        s, t = math.sin(2 * math.pi * self.t / 12.0), self.t
        known = {
            f"{BOOM}.angle": self.angles[0],
            "excavator.boom_pin.pull": 120e3 + 40e3 * s,
            f"{STICK}.angle": self.angles[1],
            "excavator.stick_pin.pull": 60e3 + 20e3 * s,
            f"{BUCKET}.angle": self.angles[2],
            "excavator.bucket_pin.pull": 25e3 * self.digging,
            f"{BUCKET}.fill": self.fill,
            f"{BUCKET}.load": 1400 * self.fill,
            "excavator.swing.angle": self.swing,
            "excavator.engine.speed": 190 + 6 * math.sin(3 * t) - 15 * self.digging,
            "excavator.speed": 0.0,
            "excavator.blade.angle": 0.35,
            "excavator.outriggers.angle": 0.6,
            "excavator.tilt.pitch": 0.03 + 0.02 * s,
            "excavator.tilt.roll": -0.05 * s,
            "excavator.stability": 0.62 + 0.2 * s,
            "excavator.hydraulics.pressure": 21e6 + 4e6 * s,
            "excavator.flag.overload": float(s > 0.9),
            "excavator.flag.relief": 0.0,
        }
        wheels = {name: 48e3 + 9e3 * math.sin(t + k) for k, (name, _) in enumerate(SIGNALS) if ".wheel_" in name}
        out = [(known | wheels)[name] for name, _ in SIGNALS]
        return np.array(out + [inputs[name] for name in CHANNELS], np.float32)

"""What the machine and its site look like: entries of plant/visual/entries.py that displays draw."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from plant.machines.excavator.linkage import flat
from plant.machines.excavator.mechanism import WHEELS, bucket_profile, load_centre, spin
from plant.machines.excavator.parameters import Parameters
from plant.visual.entries import Entry, entry, strut

YELLOW, GREY, DARK, GLASS = (0.95, 0.72, 0.10), (0.34, 0.35, 0.37), (0.13, 0.13, 0.14), (0.55, 0.72, 0.80)
EARTH, STEEL, RED, WHITE = (0.36, 0.26, 0.17), (0.45, 0.46, 0.48), (0.80, 0.16, 0.10), (0.93, 0.93, 0.92)
GRASS = (0.33, 0.38, 0.20)
BLUE, ORANGE = (0.12, 0.30, 0.55), (0.95, 0.42, 0.05)
FINISHES = {GLASS: "glass", STEEL: "steel"}
"""Of colours that are not painted."""

ALONG_Y = tuple(spin((1, 0, 0), math.pi / 2).tolist())


def finish_of(colour: tuple[float, float, float], finish: str = "") -> Entry:
    """What it is made of, where that is not paint."""
    found = finish or FINISHES.get(colour, "")
    return {"finish": found} if found else {}


class _Sketch:
    """Collects entries of one machine."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.entries: list[Entry] = []

    def put(
        self,
        body: str,
        kind: str,
        size: Sequence[float],
        at: Sequence[float],
        colour: tuple[float, float, float],
        q: Sequence[float] = (1, 0, 0, 0),
        finish: str = "",
    ) -> None:
        where = f"{self.name}.{body}" if body else ""
        self.entries.append(entry(where, kind, size, p=at, q=q, colour=colour) | finish_of(colour, finish))

    def beam(
        self,
        body: str,
        a: Sequence[float],
        b: Sequence[float],
        wide: float,
        high: float,
        colour: tuple[float, float, float],
    ) -> None:
        """A box from one point to another of the plane across y."""
        dx, dz = b[0] - a[0], b[1] - a[1]
        middle = ((a[0] + b[0]) / 2, 0.0, (a[1] + b[1]) / 2)
        q = spin((0, -1, 0), math.atan2(dz, dx)).tolist()
        self.put(body, "box", (math.hypot(dx, dz) + 0.5 * high, wide, high), middle, colour, q)

    def plate(
        self,
        body: str,
        outline: Sequence[tuple[float, float]],
        y: float,
        thick: float,
        colour: tuple[float, float, float],
    ) -> None:
        """A flat plate with a convex outline in the plane across y."""
        n = len(outline)
        points = [(x, y + side * thick / 2, z) for side in (-1, 1) for x, z in outline]
        faces = [(0, k, k + 1) for k in range(1, n - 1)] + [(n, n + k + 1, n + k) for k in range(1, n - 1)]
        for k in range(n):
            m = (k + 1) % n
            faces += [(k, n + k, m), (m, n + k, n + m)]
        self.mesh(body, points, faces, colour)

    def mesh(
        self,
        body: str,
        points: Sequence[Sequence[float]],
        faces: Sequence[Sequence[int]],
        colour: tuple[float, float, float],
        **more: object,
    ) -> None:
        name = f"{self.name}_surface{len(self.entries)}"
        flat_points = [float(v) for p in points for v in p]
        self.entries.append(
            {"kind": "surface", "name": name, "vertices": flat_points, "faces": [int(v) for f in faces for v in f]}
        )
        self.entries.append(
            entry(f"{self.name}.{body}", "mesh", (), colour=colour) | {"mesh": name} | finish_of(colour) | more
        )


def look(p: Parameters, name: str) -> tuple[Entry, ...]:
    """The machine in yellow and grey, the view from its seat, and the soil in its bucket."""
    s = _Sketch(name)
    _undercarriage(s, p)
    _upper(s, p)
    _arm(s, p)
    _bucket(s, p)
    _cylinders(s, p)
    cabin = {"kind": "camera", "name": "operator seat", "body": f"{name}.uppercarriage"}
    s.entries.append(cabin | {"p": [0.75, 0.75, 1.35], "q": [float(v) for v in spin((0, 1, 0), 0.18)]})
    return tuple(s.entries)


def _undercarriage(s: _Sketch, p: Parameters) -> None:
    front, rear, side = p["axle.front"], p["axle.rear"], p["track"] / 2
    middle = (front + rear) / 2
    s.put("undercarriage", "box", (front - rear + 0.9, 0.9, 0.42), (middle, 0, 0.92), GREY)
    s.put("undercarriage", "cylinder", (0.55, 0.16), (0, 0, 1.14), DARK)
    for x in (front, rear):
        s.put("undercarriage", "box", (0.28, 2 * side - 0.3, 0.26), (x, 0, p["wheel.radius"]), DARK)
    for wheel in WHEELS:
        out = 1.0 if "left" in wheel else -1.0
        r, w = p["wheel.radius"], p["wheel.width"]
        for twin in (-0.26, 0.26):
            s.put(wheel, "cylinder", (r, 0.36 * w), (0, twin * w, 0), DARK, ALONG_Y, "rubber")
            s.put(wheel, "cylinder", (0.95 * r, 0.44 * w), (0, twin * w, 0), DARK, ALONG_Y, "rubber")
        s.put(wheel, "cylinder", (0.52 * r, 0.98 * w), (0, 0.0, 0), YELLOW, ALONG_Y)
        for spoke in range(5):  # so that one sees it turn
            a = 2 * math.pi * spoke / 5
            s.put(
                wheel,
                "cylinder",
                (0.045, 0.06),
                (0.36 * r * math.cos(a), out * 0.51 * w, 0.36 * r * math.sin(a)),
                DARK,
                ALONG_Y,
            )
    edge = p.point("blade.edge")
    s.put("blade", "box", (0.09, 2.45, 0.55), (edge[0], 0, edge[2] + 0.275), YELLOW)
    s.put("blade", "box", (0.12, 2.45, 0.07), (edge[0] + 0.05, 0, edge[2] + 0.03), DARK)
    for y in (-0.35, 0.35):
        s.put("blade", "box", (edge[0], 0.12, 0.14), (edge[0] / 2, y, -0.08), GREY)
    pad = p.point("outrigger.pad")
    for leg in ("outrigger_left", "outrigger_right"):
        s.put(leg, "box", (pad[0] + 0.1, 0.2, 0.2), (pad[0] / 2, 0, 0), YELLOW)
        s.put(leg, "box", (0.42, 0.42, 0.07), (pad[0], 0, pad[2] + 0.02), DARK)


def _upper(s: _Sketch, p: Parameters) -> None:
    house = "uppercarriage"
    s.put(house, "box", (3.1, 2.4, 0.28), (-0.75, 0, 0.24), DARK)
    s.put(house, "box", (1.75, 2.35, 0.95), (-1.15, 0, 0.86), YELLOW)
    s.put(house, "box", (1.5, 1.5, 0.1), (-1.1, -0.1, 1.36), YELLOW)  # hood
    s.put(house, "box", (0.75, 2.45, 1.05), (-2.15, 0, 0.78), GREY)
    s.put(house, "box", (0.76, 2.46, 0.1), (-2.15, 0, 0.98), YELLOW)
    s.put(house, "box", (1.2, 0.75, 0.75), (0.35, -0.82, 0.72), YELLOW)
    for side in (-1.18, 1.18):
        for z in (0.62, 0.76, 0.90, 1.04):  # air intakes
            s.put(house, "box", (0.9, 0.02, 0.06), (-1.2, side, z), DARK)
    s.put(house, "cylinder", (0.07, 0.5), (-1.4, -0.7, 1.55), STEEL)
    for x in (-0.15, 0.4, 0.9):  # rail along the tank
        s.put(house, "cylinder", (0.02, 0.5), (x, -1.17, 1.33), DARK)
    s.put(house, "cylinder", (0.02, 1.05), (0.375, -1.17, 1.58), DARK, spin((0, 1, 0), math.pi / 2).tolist())
    pin = p.point("boom.pin")
    for y in (-0.28, 0.28):
        s.put(house, "box", (0.7, 0.1, 0.75), (pin[0] + 0.05, y, 0.55), DARK)
    _cabin(s)


def _cabin(s: _Sketch) -> None:
    """Posts and roof around panes of glass, and the seat behind them."""
    house, y = "uppercarriage", 0.74
    front, back, left, right = 1.28, -0.22, y + 0.44, y - 0.44
    s.put(house, "box", (1.5, 0.92, 0.1), (0.53, y, 0.42), DARK)  # floor
    s.put(house, "box", (1.5, 0.92, 0.08), (0.52, y, 2.02), YELLOW)
    s.put(house, "box", (1.3, 0.8, 0.06), (0.50, y, 2.08), YELLOW)
    s.put(house, "box", (0.06, 0.88, 0.85), (back, y, 0.88), YELLOW)
    for side in (left, right):
        s.put(house, "box", (0.75, 0.04, 0.5), (back + 0.375, side, 0.70), YELLOW)
        s.put(house, "box", (0.07, 0.05, 1.6), (back + 0.78, side, 1.22), DARK)
        for x in (front - 0.03, back + 0.02):
            s.put(house, "box", (0.08, 0.07, 1.62), (x, side, 1.22), DARK)
        s.put(house, "box", (0.68, 0.02, 1.5), (front - 0.40, side, 1.24), GLASS)
        s.put(house, "box", (0.72, 0.02, 1.05), (back + 0.40, side, 1.46), GLASS)
    s.put(house, "box", (0.02, 0.82, 1.5), (front - 0.02, y, 1.24), GLASS)
    s.put(house, "box", (0.02, 0.82, 0.66), (back, y, 1.64), GLASS)
    s.put(house, "box", (0.45, 0.46, 0.14), (0.30, y, 0.86), DARK, finish="rubber")  # seat
    s.put(house, "box", (0.14, 0.44, 0.62), (0.08, y, 1.22), DARK, finish="rubber")
    s.put(house, "box", (0.10, 0.24, 0.18), (0.07, y, 1.62), DARK, finish="rubber")
    s.put(house, "box", (0.40, 0.36, 0.36), (0.28, y, 0.62), GREY)
    for side in (-0.3, 0.3):  # consoles with their levers
        s.put(house, "box", (0.42, 0.12, 0.10), (0.42, y + side, 1.00), GREY)
        s.put(house, "cylinder", (0.022, 0.22), (0.56, y + side, 1.16), DARK)
    s.put(house, "cylinder", (0.06, 0.04), (-0.05, y, 2.13), DARK)
    s.put(house, "cylinder", (0.05, 0.12), (-0.05, y, 2.20), ORANGE)
    for side in (-0.3, 0.3):  # work lights
        s.put(house, "box", (0.08, 0.16, 0.10), (front - 0.02, y + side, 2.10), WHITE)


def _arm(s: _Sketch, p: Parameters) -> None:
    length = p["boom.length"]
    rod = flat(p.point("boom.cylinder.rod_pin"))
    knee = (0.44 * length, rod[1] + 0.22)
    s.beam("boom", (0.0, 0.0), knee, 0.36, 0.42, YELLOW)
    s.beam("boom", knee, (length, 0.0), 0.34, 0.36, YELLOW)
    s.put("boom", "cylinder", (0.14, 0.5), (0, 0, 0), DARK, ALONG_Y)
    s.put("boom", "cylinder", (0.12, 0.48), (length, 0, 0), DARK, ALONG_Y)
    s.put("boom", "cylinder", (0.09, 0.56), (rod[0], 0, rod[1]), DARK, ALONG_Y)
    foot = flat(p.point("stick.cylinder.foot"))
    s.put("boom", "box", (0.3, 0.2, 0.3), (foot[0], 0, foot[1] - 0.12), YELLOW)
    s.put("boom", "cylinder", (0.07, 0.3), (foot[0], 0, foot[1]), DARK, ALONG_Y)
    stick = p["stick.length"]
    tail = flat(p.point("stick.cylinder.rod_pin"))
    s.beam("stick", (tail[0], tail[1]), (0.35, 0.12), 0.28, 0.30, YELLOW)
    s.beam("stick", (0.2, 0.10), (stick, 0.0), 0.26, 0.30, YELLOW)
    s.put("stick", "cylinder", (0.10, 0.36), (stick, 0, 0), DARK, ALONG_Y)
    foot = flat(p.point("bucket.cylinder.foot"))
    s.put("stick", "box", (0.25, 0.16, 0.34), (foot[0], 0, foot[1] - 0.16), YELLOW)
    for y in (-0.16, 0.16):
        s.put("rocker", "box", (p["rocker.length"] + 0.12, 0.05, 0.11), (p["rocker.length"] / 2, y, 0), GREY)
    s.put("link", "box", (p["link.length"] + 0.12, 0.16, 0.12), (p["link.length"] / 2, 0, 0), GREY)


def _cylinders(s: _Sketch, p: Parameters) -> None:
    """Those of the arm and of the blade: barrels with rods that slide."""

    def put(a: str, at: Sequence[float], b: str, to: Sequence[float], bore: float, barrel: float) -> None:
        size = (0.62 * bore, 0.36 * bore, barrel)
        s.entries.append(strut(f"{s.name}.{a}", at, f"{s.name}.{b}", to, size, colour=DARK))

    def closed(name: str) -> float:
        return 0.86 * p.point(f"{name}.cylinder.lengths")[0]

    foot, rod = p.point("boom.cylinder.foot"), p.point("boom.cylinder.rod_pin")
    for y in (-0.27, 0.27):  # two side by side, which the machine counts as one
        put("uppercarriage", (foot[0], y, foot[2]), "boom", (rod[0], y, rod[2]), 0.125, closed("boom"))
    put("boom", p.point("stick.cylinder.foot"), "stick", p.point("stick.cylinder.rod_pin"), 0.145, closed("stick"))
    tip = (p["rocker.length"], 0.0, 0.0)
    put("stick", p.point("bucket.cylinder.foot"), "rocker", tip, 0.125, closed("bucket"))
    pin = p.point("blade.pin")
    for y in (-0.2, 0.2):
        put("undercarriage", (pin[0] - 0.15, y, pin[2] + 0.22), "blade", (0.5, y, 0.0), 0.1, 0.45)


def _bucket(s: _Sketch, p: Parameters) -> None:
    """Two side plates and a shell along the back, open at the mouth, with teeth; the load grows with the fill."""
    outline, half, r = bucket_profile(p), p["bucket.width"] / 2, p["bucket.radius"]
    for side in (-1, 1):
        s.plate("bucket", outline, side * (half - 0.02), 0.04, STEEL)
    for a, b in pairwise(outline):
        s.beam("bucket", a, b, 2 * half, 0.05, STEEL)
    for k in range(5):
        y = (k - 2) / 2 * (half - 0.08)
        s.put("bucket", "box", (0.22, 0.09, 0.06), (r + 0.06, y, 0.01), DARK)
    middle = load_centre(p)
    points = [(x, y, z) for y in (-half + 0.05, half - 0.05) for x, z in outline]
    n = len(outline)
    back = np.array([0.0, 0.0, max(z for _, z in outline) - 0.03])  # it grows from the back to the mouth
    inward = [tuple(middle + 0.9 * (np.array(v) - middle) - back) for v in points]
    faces = [(0, k, k + 1) for k in range(1, n - 1)] + [(n, n + k + 1, n + k) for k in range(1, n - 1)]
    for k in range(n):
        m = (k + 1) % n
        faces += [(k, n + k, m), (m, n + k, n + m)]
    grows = {
        "signal": f"{s.name}.bucket.fill",
        "scale": [0.0, 0.0, 1.0],
        "p": [float(v) for v in back],
        "finish": "soil",
    }
    s.mesh("bucket", inward, faces, EARTH, **grows)


def fence(name: str) -> list[Entry]:
    """A plastic fence: rails, posts and feet."""
    made = [
        entry(name, "box", (2.0, 0.05, 0.14), p=(0, 0, z), colour=c)
        for z, c in ((0.93, RED), (0.62, WHITE), (0.30, RED))
    ]
    made += [entry(name, "box", (0.07, 0.06, 0.95), p=(x, 0, 0.52), colour=WHITE) for x in (-0.9, 0.0, 0.9)]
    return made + [entry(name, "box", (0.08, 0.6, 0.10), p=(x, 0, 0.05), colour=DARK) for x in (-0.75, 0.75)]


def cone(name: str) -> list[Entry]:
    """A traffic cone."""
    return [
        entry(name, "cone", (0.16, 0.7), p=(0, 0, 0.36), colour=ORANGE),
        entry(name, "cylinder", (0.105, 0.12), p=(0, 0, 0.33), colour=WHITE),
        entry(name, "box", (0.42, 0.42, 0.05), p=(0, 0, 0.025), colour=DARK),
    ]


def truck(x: float, y: float, ahead: float, bed: tuple[float, float, float, float]) -> list[Entry]:
    """A tipper: bed of so much length, width, floor height and wall height, cab before it, wheels below."""
    length, width, floor, wall = bed
    made = []

    def put(
        kind: str,
        size: Sequence[float],
        at: Sequence[float],
        colour: tuple[float, float, float],
        q: Sequence[float] = (1, 0, 0, 0),
        finish: str = "",
    ) -> None:
        where = (x + ahead * at[0], y + at[1], at[2])
        made.append(entry("", kind, size, p=where, q=q, colour=colour) | finish_of(colour, finish))

    for sign in (1, -1):
        put("box", (length + 0.2, 0.08, wall), (0, sign * (width / 2 + 0.05), floor + wall / 2), BLUE)
        put("box", (0.08, width + 0.18, wall), (sign * (length / 2 + 0.05), 0, floor + wall / 2), BLUE)
    put("box", (length + 0.2, width, 0.12), (0, 0, floor - 0.08), STEEL)
    put("box", (length + 2.6, 0.9, 0.28), (1.0, 0, floor - 0.32), DARK)
    put("box", (1.7, 2.35, 1.15), (length / 2 + 1.3, 0, 1.2), BLUE)
    put("box", (1.45, 2.25, 0.85), (length / 2 + 1.2, 0, 2.15), GLASS)
    put("box", (0.3, 1.9, 0.75), (length / 2 + 0.85, 0, 2.05), DARK)  # seats
    put("box", (1.5, 2.35, 0.1), (length / 2 + 1.2, 0, 2.62), BLUE)
    for wx in (-1.5, -0.35, length / 2 + 1.35):
        for wy in (-1.0, 1.0):
            put("cylinder", (0.5, 0.34), (wx, wy, 0.5), DARK, ALONG_Y, "rubber")
            put("cylinder", (0.26, 0.36), (wx, wy, 0.5), GREY, ALONG_Y)
    return made

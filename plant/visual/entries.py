"""The visual description of a machine as plain maps, for displays that know nothing else of it.

An entry is a map that JSON and MessagePack can carry:

    body      name of the body it moves with, "" for the ground
    kind      box, sphere, capsule, cylinder, cone, plane, torus, link, mesh
    size      full lengths [m], in the order of plant/collision/shape: a box has x, y, z, a cylinder radius and height
    p, q      position [m] and quaternion w x y z of the shape in the body's frame
    colour    red, green, blue from 0 to 1

A mesh has no size but `mesh`, the name of a surface. Surfaces are entries of their own, of the kind `surface` with
`name`, `vertices` [m, x y z one after another] and `faces` (three vertices each): one that stands on ten bodies is
sent once. A surface with too many triangles is not sent: the box around it takes its place.

Some entries say more, for displays that can show it:

    strut     a cylinder between two bodies: from `p` of `body` to `p_b` of `body_b`; size is the radius of the barrel,
              that of the rod, and the length of the barrel
    camera    a place to look from, along x of its frame: `name`, `body`, `p`, `q`
    frame     of a joint, on the first of its two bodies: `name`, `body`, `body_b`, `p`, `q`; signals that begin with
              its name are the joint's
    signal    of any shape: it is scaled by the value of this signal, 0 to 1, times `scale` along x, y, z (0 = as it is)
    finish    of any shape: paint, steel, rubber, glass, soil or grass
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

Entry = dict[str, Any]

GROUND_COLOUR = (0.55, 0.52, 0.47)
COLOURS = (  # Okabe and Ito's, told apart by everybody
    (0.90, 0.62, 0.00),
    (0.34, 0.71, 0.91),
    (0.00, 0.62, 0.45),
    (0.94, 0.89, 0.26),
    (0.00, 0.45, 0.70),
    (0.84, 0.37, 0.00),
    (0.80, 0.47, 0.65),
)


def entry(
    body: str,
    kind: str,
    size: Iterable[float],
    *,
    p: Iterable[float] = (0.0, 0.0, 0.0),
    q: Iterable[float] = (1.0, 0.0, 0.0, 0.0),
    colour: Sequence[float] = COLOURS[0],
) -> Entry:
    """One shape; numbers are made floats, so that a reader never guesses wrong."""
    numbers = {"size": size, "p": p, "q": q, "colour": colour}
    return {"body": body, "kind": kind} | {key: [float(x) for x in given] for key, given in numbers.items()}


def strut(
    body: str,
    p: Iterable[float],
    body_b: str,
    p_b: Iterable[float],
    size: Iterable[float],
    *,
    colour: Sequence[float] = COLOURS[0],
) -> Entry:
    """A cylinder from a point of one body to a point of another."""
    return entry(body, "strut", size, p=p, colour=colour) | {"body_b": body_b, "p_b": [float(x) for x in p_b]}

"""Every pair of kinds in the table of pairs, over random places, against coal, support functions and sampling.

One sweep for each pair of kinds (2,000 places; 100,000 if slow) and six questions about it:

sound     Points are finite, normals unit vectors, depths within the margin, features numbers of 20 bits.
hit       Points are listed where the shapes are nearer than the margin, and only there; the deepest overlaps where the
          shapes do, and only there. Within rounding of either border anything goes.
depth     The deepest point has the signed distance of the two.
normal    It has the normal at the nearest points; convex shapes moved apart along it by the depth touch no more.
surface   No point lies beyond the surface of either shape (half the depth up or down its normal); the deepest lies on
          both. Points further out may lie within a shape, as the upper end of a leaning capsule does.
motion    Turned and moved together, the pair has the same depth; and the same points, but for a few pairs (parallel
          ones, as a rule) in which several choices are as good. Points in the same place count as one.

What is the truth, and where definitions differ (tolerances are in pair_judge.py):

convex, convex or plane   Apart: coal's distance, unless two points of the surfaces are nearer (coal errs by 1e-5 on
          nearly parallel capsules). Overlapping: the overlap of the support functions along coal's normal or ours,
          whichever is less, as no direction can part the two by less than the depth; coal's own depth is now and
          then too long, and of some overlapping cylinders and cones it has none. Boxes prefer faces that are worse by
          1 percent and up to 2.6 degrees off, capsules their ends, level discs and rings points that stay.
plane, anything else      The support function along the plane's normal.
torus, link               The least signed distance along the core. Where the core itself runs through a shape, each
          point of it leaves by its own nearest way, and two minima side by side count as one: the depth is rough.
sphere, capsule, torus, link against mesh, field
          As above, with the distance to every triangle. A capsule or ring whose core goes through the surface is
          lifted out by what is furthest in, which no signed distance knows: there only the hit is compared.
any other against mesh, field
          Apart: coal's distance to the triangles; wholly inside or under them: a hit. Overlapping: coal has a depth for
          each triangle and none for the whole; we push points of the solid through the face above them and ridges
          out of the solid. There only the hit is compared, and that points lie beyond neither surface.
ground    What reaches over the border of ground, or is wholly below an open mesh, is left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any

import coal
import numpy as np
import pytest
from pair_draws import Family, family, random_turns
from pair_judge import TILT, Case, Judge, Pair
from pair_truth import coal_distances

from plant.collision.model import Kind
from plant.collision.pairs.table import known_pairs

FEW, MANY, DEAR = 2000, 100_000, 500
CHUNK = 1000
ASPECTS = ("sound", "hit", "depth", "normal", "surface", "motion")

# What is wrong with a pair, in which aspects of the few places and of the many.
FAULTS: dict[str, list[tuple[str, str, str]]] = {}


@dataclass
class Sweep:
    """What was found: how many pairs failed in what, and the first of them in words."""

    pairs: int = 0
    share: np.ndarray = field(default_factory=lambda: np.zeros(3))  # further apart than the margin, nearer, overlapping
    failed: dict[str, int] = field(default_factory=lambda: dict.fromkeys(ASPECTS, 0))
    told: dict[str, str] = field(default_factory=lambda: dict.fromkeys(ASPECTS, ""))
    worst_depth: float = 0.0  # of the scale
    worst_tilt: float = 0.0  # [rad] but for pairs with several nearest points
    other_points: int = 0  # pairs with other points after a motion
    judged: int = 0  # pairs about which there is a truth
    measured: int = 0  # those whose distance or depth is compared

    def add(self, case: Case, name: str) -> None:
        """Judge a chunk."""
        moved, others = case.motion_wrong()
        hit, depth, normal = case.hit(), case.depth_wrong(), case.normal_wrong()
        wrong = case.unsound(), hit, depth, normal, case.surface_wrong(), moved
        for aspect, bad in zip(ASPECTS, wrong, strict=True):
            if bad.any() and not self.told[aspect]:
                self.told[aspect] = f"{aspect} of {name}, {case.tell(int(np.argmax(bad)))}"
            self.failed[aspect] += np.count_nonzero(bad)
        right = ~(hit | depth | normal)
        self.worst_depth = max(self.worst_depth, float((case.depth_error / case.scale)[right].max(initial=0.0)))
        self.worst_tilt = max(self.worst_tilt, float(case.tilt[right & (case.tilt <= TILT)].max(initial=0.0)))
        far = case.truth.distance > case.places.margin
        self.share += [np.count_nonzero(far), np.count_nonzero(case.apart & ~far), np.count_nonzero(~case.apart)]
        self.pairs += len(far)
        self.judged += np.count_nonzero(case.truth.valid)
        self.measured += np.count_nonzero(case.truth.valid & case.truth.known)
        self.other_points += others


@cache
def sweep(pair: Pair, count: int) -> Sweep:
    """Chunk c of a sweep is Case(Judge(pair, seed), default_rng([seed, c]), size): so a failure is replayed."""
    seed, done = count, Sweep()
    judge = Judge(pair, seed)
    for c in range(-(-count // CHUNK)):
        size = min(CHUNK, count - c * CHUNK)
        done.add(
            Case(judge, np.random.default_rng([seed, c]), size), f"{names(pair)}, seed {seed}, chunk {c} of {size}"
        )
    return done


def names(pair: Pair) -> str:
    return f"{pair[0].name.lower()}-{pair[1].name.lower()}"


def few(pair: Pair) -> int:
    """A quarter where each place costs a search along a curve over every triangle."""
    return DEAR if pair[1] > Kind.LINK and pair[0] in (Kind.CAPSULE, Kind.TORUS, Kind.LINK) else FEW


def least_measured(pair: Pair) -> float:
    """Share of the places whose distance or depth must be compared, not only whether they touch."""
    if pair[1] <= Kind.LINK or pair[0] in (Kind.SPHERE, Kind.PLANE):
        return 0.99
    return 0.84 if pair[0] in (Kind.CAPSULE, Kind.TORUS, Kind.LINK) else 0.45  # cores outside; whatever is apart


def questions() -> list[Any]:
    """Every pair, count and aspect, with what is known to be wrong."""
    made = []
    for pair in sorted(known_pairs()):
        for count in (few(pair), MANY):
            for aspect in ASPECTS:
                marks = [pytest.mark.slow, pytest.mark.timeout(3600)] if count == MANY else []
                for reason, at_few, at_many in FAULTS.get(names(pair), []):
                    if aspect in (at_many if count == MANY else at_few).split():
                        marks.append(pytest.mark.xfail(strict=True, reason=reason))
                made.append(pytest.param(pair, count, aspect, id=f"{names(pair)}-{count}-{aspect}", marks=marks))
    return made


@pytest.mark.parametrize(("pair", "count", "aspect"), questions())
def test_random_places(pair: Pair, count: int, aspect: str) -> None:
    done = sweep(pair, count)
    assert (done.share > 0.1 * count).all(), "the places are not what they should be"
    assert done.judged > 0.95 * count, f"there is a truth about {done.judged} of {count} only"
    assert done.measured > least_measured(pair) * count, f"only {done.measured} of {count} distances are compared"
    assert done.failed[aspect] == 0, f"{done.failed[aspect]} of {count}, the first: {done.told[aspect]}"
    if aspect == "motion":
        assert done.other_points < 0.02 * count


@pytest.mark.parametrize("kind", [k for k in Kind if k not in (Kind.TORUS, Kind.LINK)], ids=lambda k: k.name.lower())
def test_the_truth_about_points_is_that_of_coal(kind: Kind) -> None:
    """The signed distance that all else is judged by, beside coal's of a tiny ball.

    Inside a mesh coal sees no depth; out of a cylinder it pushes a ball sideways even where an end is nearer.
    """
    shapes, rng, ball = family(kind, 3), np.random.default_rng(4), coal.Sphere(1e-7)
    which, pos, rot = rng.integers(len(shapes.shapes), size=500), rng.uniform(-2, 2, (500, 3)), random_turns(rng, 500)
    reach = np.where(np.isinf(shapes.bound), 1.0, shapes.bound)[which]
    points = pos + np.einsum("kij,kj->ki", rot, rng.uniform(-0.8, 0.8, (500, 3)) * reach[:, None])
    ours = shapes.signed(which, pos, rot, points)
    places = np.stack([points, pos], 1), np.stack([rot, rot], 1)
    theirs, _ = coal_distances([ball] * 500, [shapes.twins[w] for w in which], *places)
    theirs += 1e-7
    if kind in (Kind.MESH, Kind.FIELD):
        ours = np.abs(ours)
    if kind == Kind.CYLINDER:
        assert (ours > theirs - 1e-6).all()
        ours, theirs = ours[theirs > 0.0], theirs[theirs > 0.0]
    assert ours == pytest.approx(theirs, abs=1e-6)


@pytest.mark.parametrize("kind", [Kind.TORUS, Kind.LINK], ids=lambda k: k.name.lower())
def test_the_truth_about_rings_is_that_of_a_chain_of_capsules(kind: Kind) -> None:
    """A ring is the union of capsules between many points of its core, to within the sagitta of their chords."""
    shapes: Family = family(kind, 3)
    rng = np.random.default_rng(5)
    for w, shape in enumerate(shapes.shapes[:8]):
        half, bend, wire = shape.sizes()[:3] if kind == Kind.LINK else (0.0, *shape.sizes()[:2])
        angle = np.linspace(0.0, 2.0 * np.pi, 2001)
        core = np.stack([bend * np.cos(angle) + half * np.sign(np.cos(angle)), bend * np.sin(angle), 0 * angle], 1)
        points = rng.uniform(-1, 1, (50, 3)) * shape.bound()
        a, b = core[:-1], core[1:]
        s = np.einsum("nkc,kc->nk", points[:, None] - a, b - a) / ((b - a) ** 2).sum(1)
        foot = a + np.clip(s, 0, 1)[..., None] * (b - a)
        near = np.linalg.norm(points[:, None] - foot, axis=2).min(1) - wire
        zeros, eyes = np.zeros((50, 3)), np.tile(np.eye(3), (50, 1, 1))
        assert shapes.signed(np.full(50, w), zeros, eyes, points) == pytest.approx(near, abs=1e-5 * shape.bound())

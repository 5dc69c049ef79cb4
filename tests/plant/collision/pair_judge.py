"""The truth about random places of two kinds of shapes, and how far from it our points may be.

All lengths are judged relative to `scale`, the two shapes' bounding radii together (without ground).
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
from pair_draws import GROUND, Places, Points, Table, draw, family, random_turns
from pair_truth import coal_distances, core_distances
from scipy.optimize import minimize

from plant.collision.model import Kind

Pair = tuple[Kind, Kind]
FEATURES = 1 << 20
ROUNDING = 2e-6
LEVEL = 2e-5  # points fixed to a ring or rim that is level are listed for a lowest point that is deeper by as little
DEEP = 0.02  # two minima side by side, of a core that runs through a shape, count as one
FACES = 0.011  # of the depth: boxes prefer faces to edges that are better by as little
RIM = 2e-3  # of the least half length: a corner of a box that sticks out over a face as little counts as on it
RADIUS = {Kind.SPHERE: 0, Kind.CAPSULE: 0, Kind.TORUS: 1, Kind.LINK: 2}  # which size that of the wire is
TILT = 0.02  # [rad] between normals that are the same
LEANING = {  # left along the normal after a push by the depth: boxes prefer faces up to 2.6 degrees off, capsules ends
    (Kind.BOX, Kind.BOX): 0.09,
    (Kind.CAPSULE, Kind.BOX): 0.01,
    (Kind.CAPSULE, Kind.CYLINDER): 0.01,
}
ROOT = 1.5e-3  # along a flat place a point is known to the root of the rounding
SIDES = (Kind.CAPSULE, Kind.CYLINDER, Kind.CONE)  # two of their sides up to 0.02 rad off count as parallel
LEVELS = {(Kind.CYLINDER, Kind.PLANE), (Kind.CONE, Kind.PLANE)}
BOXES = (Kind.BOX, Kind.BOX)


class Truth(NamedTuple):
    """About each pair of places."""

    distance: np.ndarray  # signed
    normal: np.ndarray  # from the second to the first
    core: np.ndarray  # least signed distance of a core, inf where there is none
    known: np.ndarray  # whether the distance is what the definition says; if not, only its sign is
    valid: np.ndarray  # whether there is a truth at all


class Judge:
    """Two families, our kernel for them, and the truth about them."""

    def __init__(self, pair: Pair, seed: int) -> None:
        self.pair = pair
        self.families = family(pair[0], 2 * seed), family(pair[1], 2 * seed + 1)
        self.table = Table(*self.families)
        one, other = pair
        self.convex = other <= Kind.PLANE
        self.core = -1  # which of the two is taken for a curve with a radius
        if one != Kind.PLANE and other in (Kind.TORUS, Kind.LINK):
            self.core = 1
        elif one in RADIUS and other > Kind.LINK:
            self.core = 0
        ring = Kind.TORUS in pair or Kind.LINK in pair
        self.rounding = LEVEL if ring or pair in LEVELS else ROUNDING

    def side(self, places: Places, s: int) -> list[np.ndarray]:
        """Variants, places and turns of the first or second shapes."""
        return [np.ascontiguousarray(a[:, s]) for a in places[:3]]

    def scale(self, places: Places) -> np.ndarray:
        bounds = [np.where(f.graph | np.isinf(f.bound), 0.0, f.bound) for f in self.families]
        return bounds[0][places.which[:, 0]] + bounds[1][places.which[:, 1]]

    def truth(self, places: Places, samples: int = 0) -> Truth:
        n = len(places.margin)
        core, known, valid = np.full(n, np.inf), np.ones(n, bool), self._on_ground(places)
        sheet = self.families[1].graph[places.which[:, 1]] & (self.pair[1] == Kind.MESH)  # it has no inside
        if self.core >= 0:
            distance, normal, core = self._along_core(places, samples)
            if self.pair[1] > Kind.LINK and self.pair[0] != Kind.SPHERE:
                known = core > 0.0
            valid &= ~(sheet & (core < 0.5 * (distance - core)))
        elif self.pair[0] == Kind.PLANE:
            normal = -places.rot[:, 0, :, 2]
            distance = -self.overlap(places, normal)
        else:
            twins = [[f.twins[w] for w in places.which[:, s]] for s, f in enumerate(self.families)]
            distance, normal = coal_distances(*twins, places.pos, places.rot)
            valid &= np.abs(distance) < 1e3
            if self.pair[0] > Kind.LINK:  # surfaces that cross have no normal to coal
                up = np.where(self.families[1].graph[places.which[:, 1], None], places.rot[:, 1, :, 2], 0.0)
                up = np.where(up.any(1)[:, None], up, places.pos[:, 0] - places.pos[:, 1])
                normal = np.where(distance[:, None] > 0.0, normal, up / np.linalg.norm(up, axis=1)[:, None])
            if not self.convex:
                inside = valid & (distance > 0.0) & self._is_inside(places)
                distance = np.where(inside, -distance, distance)
                normal = np.where(inside[:, None], -normal, normal)
                known = distance > 0.0
                valid &= ~(inside & sheet)
        return Truth(distance, normal, core, known, valid)

    def _along_core(self, places: Places, samples: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        mine, theirs = self.families[self.core], self.families[1 - self.core]
        which, pos, rot = self.side(places, self.core)
        out = np.zeros((len(which), 7))
        target = int(theirs.kind), theirs.size, theirs.triangles, theirs.balls, theirs.first, theirs.graph
        samples = samples or (32 if mine.kind == Kind.CAPSULE else 128)
        core_distances(
            int(mine.kind), mine.size, which, pos, rot, *target, *self.side(places, 1 - self.core), samples, out
        )
        normal = out[:, 4:] / np.maximum(np.linalg.norm(out[:, 4:], axis=1), 1e-9)[:, None]
        radius = mine.size[which, RADIUS[mine.kind]]
        return out[:, 0] - radius, normal * (1 - 2 * self.core), out[:, 0]

    def _is_inside(self, places: Places) -> np.ndarray:
        """Whether a point of one is inside a surface that is the other, of two that do not cross."""
        inside = np.zeros(len(places.margin), bool)
        for s, f in enumerate(self.families):
            if f.kind > Kind.LINK:
                which, pos, rot = self.side(places, 1 - s)
                point = pos + np.einsum("kij,kj->ki", rot, self.families[1 - s].some_point[which])
                inside |= f.signed(*self.side(places, s), point) < 0.0
        return inside

    def _on_ground(self, places: Places) -> np.ndarray:
        """Whether all is above or below ground, not beside it."""
        well = np.ones(len(places.margin), bool)
        for s, f in enumerate(self.families):
            mine = f.graph[places.which[:, s]]
            if mine.any():
                at = np.einsum("kji,kj->ki", places.rot[:, s], places.pos[:, 1 - s] - places.pos[:, s])
                reach = np.abs(at[:, :2]).max(1) + self.families[1 - s].bound[places.which[:, 1 - s]]
                well &= ~mine | (reach < GROUND)
        return well

    def overlap(self, places: Places, normal: np.ndarray) -> np.ndarray:
        """How far the extents of both overlap along a normal; inf where that is none."""
        reach = [f.extents(*self.side(places, s)[::2], (2 * s - 1) * normal) for s, f in enumerate(self.families)]
        whole = reach[0] + reach[1] - ((places.pos[:, 0] - places.pos[:, 1]) * normal).sum(1)
        return np.where(np.abs(np.linalg.norm(normal, axis=1) - 1.0) < 1e-6, whole, np.inf)

    def beyond(self, places: Places, points: Points) -> np.ndarray:
        """How far each listed point is outside the surface of either shape [rows, 2] (negative: inside)."""
        half = 0.5 * points.depth[:, None] * points.normal
        rows = places.taken(points.pair)
        sides = [f.signed(*self.side(rows, s), points.point + (2 * s - 1) * half) for s, f in enumerate(self.families)]
        return np.stack(sides, 1)


class Case:
    """Random places of a pair of kinds, the truth and our points; and which pairs are wrong in what."""

    def __init__(self, judge: Judge, rng: np.random.Generator, count: int) -> None:
        self.judge, self.rng = judge, rng
        self.places = p = draw(*judge.families, rng, count, lambda places: judge.truth(places, 24))
        self.points = q = judge.table.points(p)
        self.scale, self.depth, self.listed = judge.scale(p), q.depths, q.count > 0
        self.beyond = judge.beyond(p, q)
        self.truth = judge.truth(p)
        if judge.core >= 0:
            self._look_closer()
        if judge.convex:
            self._ask_supports()
        self.apart = self.truth.distance > 0.0

    def _look_closer(self) -> None:
        """Sample the core finely where we disagree."""
        t = self.truth
        close = 0.5 * self.judge.rounding * self.scale
        ours = np.where(self.listed, -self.depth, np.maximum(self.places.margin, t.distance))
        off = np.flatnonzero(t.valid & t.known & (np.abs(ours - t.distance) > close))
        for mine, better in zip(t, self.judge.truth(self.places.taken(off), 2048), strict=True):
            mine[off] = better

    def _ask_supports(self) -> None:
        """Overlapping: the least overlap along coal's normal and ours. Apart: coal, unless two points are nearer."""
        t, p = self.truth, self.places
        along = self.judge.overlap(p, self.points.normals)
        least = np.minimum(along, self.judge.overlap(p, t.normal))
        off = np.append(np.abs(self.beyond).max(1), np.inf)[self.points.deepest]
        nearer = np.where(off < 1e-9 * self.scale, -self.depth, np.inf)
        apart = t.valid & (t.distance > 0.0)
        distance = np.where(apart, np.where(nearer > 0.0, np.minimum(t.distance, nearer), t.distance), -least)
        self.truth = t._replace(distance=distance, valid=t.valid | (least < np.inf))
        for k in np.flatnonzero(self.depth_error > self.slack):
            distance[k] = self._settled(int(k), distance[k])
        del self.slack, self.depth_error

    def _settled(self, k: int, distance: float) -> float:
        """Where we and coal disagree: the least overlap along directions near ours is the depth, or minus the gap."""
        row, n = self.places.taken([k]), self.points.normals[k]
        u = np.cross(n, np.eye(3)[np.argmin(np.abs(n))])
        v = np.cross(n, u)

        def along(x: np.ndarray) -> float:
            way = n + x[0] * u + x[1] * v
            return float(self.judge.overlap(row, (way / np.linalg.norm(way))[None])[0])

        found = minimize(along, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 1e-14})
        if abs(found.fun + distance) > 1e-4 * self.scale[k]:
            return distance
        return -float(found.fun) if distance > 0.0 else max(distance, -float(found.fun))

    @cached_property
    def slack(self) -> np.ndarray:
        """What counts as rounding."""
        rounding = self.judge.rounding * self.scale
        if self.judge.pair != BOXES:
            return rounding
        least = [f.size[:, :3].min(1)[w] for f, w in zip(self.judge.families, self.places.which.T, strict=True)]
        return rounding + FACES * np.abs(self.truth.distance) + RIM * np.minimum(*least)

    def unsound(self) -> np.ndarray:
        """Whether any point breaks the contract of pair kernels, whatever the truth is."""
        q = self.points
        wrong = ~(np.isfinite(q.point).all(1) & np.isfinite(q.depth))
        wrong |= ~(np.abs(np.linalg.norm(q.normal, axis=1) - 1.0) < 1e-9)
        wrong |= q.depth < -self.places.margin[q.pair] - 1e-12
        wrong |= (q.feature < 0) | (q.feature >= FEATURES)
        return np.bincount(q.pair[wrong], minlength=len(self.scale)) > 0

    def hit(self) -> np.ndarray:
        """Whether points are listed where there should be none, or none where there should be some."""
        t, margin, slack = self.truth, self.places.margin, self.slack
        missed = ~self.listed & (t.distance < margin - slack)
        early = self.listed & (t.distance > margin + slack)
        through = (t.distance < -slack) & ~(self.depth > 0.0)
        touch = (t.distance > slack) & (self.depth > 0.0)
        return t.valid & (missed | early | through | touch)

    @cached_property
    def depth_error(self) -> np.ndarray:
        """Of the deepest point; 0 where it is not compared."""
        t = self.truth
        compared = t.valid & t.known & self.listed & (t.distance < self.places.margin)
        return np.where(compared, np.abs(np.where(compared, self.depth, 0.0) + t.distance), 0.0)

    def depth_wrong(self) -> np.ndarray:
        return self.depth_error > self.depth_slack

    @cached_property
    def depth_slack(self) -> np.ndarray:
        deep = (self.truth.core < 0.0) & (self.judge.pair[0] != Kind.SPHERE)
        return np.where(deep, DEEP * self.scale, self.slack)

    @cached_property
    def tilt(self) -> np.ndarray:
        """Angle [rad, if small] of the deepest point's normal to the truth; 0 where it is not compared."""
        j, t = self.judge, self.truth
        compared = t.valid & t.known & self.listed & (t.distance < self.places.margin)
        if j.core >= 0:
            return np.where(compared, self._core_tilt(), 0.0)
        if j.pair[1] != Kind.PLANE and j.pair[0] != Kind.PLANE:
            compared &= self.apart
        return np.where(compared, np.linalg.norm(self.points.normals - t.normal, axis=1), 0.0)

    def _core_tilt(self) -> np.ndarray:
        """A core moved along the normal leaves the other shape by as much; if tilted, by its cosine."""
        j, sign = self.judge, 1 - 2 * self.judge.core
        mine, theirs = j.families[j.core], j.families[1 - j.core]
        radius = mine.size[self.places.which[:, j.core], RADIUS[mine.kind]]
        at = np.concatenate([self.points.point, np.zeros((1, 3))])[self.points.deepest]
        out = sign * self.points.normals
        depth = np.where(self.listed, self.depth, 0.0)
        core = at + (radius - 0.5 * depth)[:, None] * out
        step = 1e-3 * radius
        other = j.side(self.places, 1 - j.core)
        gain = theirs.signed(*other, core + step[:, None] * out) - theirs.signed(*other, core)
        return np.sqrt(2.0 * np.maximum(1.0 - gain / step, 0.0))

    def normal_wrong(self) -> np.ndarray:
        """Whether the normal is not the true one; of convex shapes also whether a push along it does not part them."""
        j, t = self.judge, self.truth
        off = np.append(np.abs(self.beyond).max(1), np.inf)[self.points.deepest]
        outside = self.apart | ((j.core >= 0) & (t.core > 0.0))
        nearest = (off < self.slack) & (self.depth_error < self.slack) & outside
        wrong = (self.tilt > TILT) & ~nearest  # two points of the surfaces as near as that are as good
        wrong &= j.pair != BOXES  # near an edge their normal is that of a face
        if not j.convex:
            return wrong
        slack = self.slack + LEANING.get(j.pair, 0.0) * self.scale
        left = self.listed & t.valid & (j.overlap(self.places, self.points.normals) - self.depth > slack)
        hits = np.flatnonzero(self.listed & t.valid & ~self.apart)
        by = (self.depth + slack)[hits, None] * self.points.normals[hits]
        moved = self.places.taken(hits)
        moved.pos[:, 0] += by
        after = j.truth(moved)
        wrong[hits] |= after.valid & (after.distance < -slack[hits])
        return left | wrong

    def surface_wrong(self) -> np.ndarray:
        """Whether any point is beyond a surface, or the deepest not on both."""
        j, t = self.judge, self.truth
        sides = j.pair[0] in SIDES and j.pair[1] in SIDES
        slack = self.slack + (0.02 if sides else ROOT) * self.scale * (j.pair[1] < Kind.PLANE)
        outside = self.beyond.max(1, initial=-np.inf) > slack[self.points.pair]
        wrong = np.bincount(self.points.pair[outside], minlength=len(slack)) > 0
        off = np.append(np.abs(self.beyond).max(1), 0.0)[self.points.deepest]
        on_both = t.known & (t.core > 0.0) & (t.distance < self.places.margin)
        return t.valid & ((wrong & (t.known | (j.core < 0))) | (on_both & (off > slack)))

    def motion_wrong(self) -> tuple[np.ndarray, int]:
        """Whether hit or depth change with a motion of both; and how many have other points."""
        n, p, q = len(self.scale), self.places, self.points
        turn, by = random_turns(self.rng, n), self.rng.uniform(-2.0, 2.0, (n, 3))
        moved = self.judge.table.points(p.turned(turn, by))
        one, other = (np.maximum(x.depths, -p.margin) for x in (q, moved))
        back = np.einsum("kji,kj->ki", turn[moved.pair], moved.point - by[moved.pair])
        near = np.zeros(len(q.pair), bool)
        both = moved.count[q.pair] > 0
        for m in range(moved.count.max(initial=0)):  # the m-th point after the motion against all before it
            row = np.minimum(m, moved.count[q.pair] - 1) + moved.first[q.pair]
            apart = q.point[both] - back[row[both]]
            near[both] |= (apart * apart).sum(1) < (1e-4 * self.scale[q.pair[both]]) ** 2
        other_point = both & ~near & (q.depth > -p.margin[q.pair] + self.slack[q.pair])
        others = np.count_nonzero(np.bincount(q.pair[other_point], minlength=n))
        return np.abs(one - other) > self.depth_slack, int(others)

    def tell(self, k: int) -> str:
        """Pair k in full, to be put down again by hand."""
        p, q, t = self.places, self.points, self.truth
        shapes = [f.shapes[w] for f, w in zip(self.judge.families, p.which[k], strict=True)]
        rows = slice(q.first[k], q.first[k + 1])
        return (
            f"row {k}: distance {t.distance[k]:.9g} along {t.normal[k].tolist()}, margin {p.margin[k]!r}; "
            f"found depths {q.depth[rows].tolist()}, normals {q.normal[rows].tolist()}, points "
            f"{q.point[rows].tolist()}; variants {p.which[k].tolist()} {shapes}, pos {p.pos[k].tolist()}, "
            f"rot {p.rot[k].tolist()}"
        )

"""From a compiled world to natural coordinates: its entities, combinations and rows, checked here.

Every locked axis of a joint becomes either a shared entity or rows; drives, limits, friction, springs, cylinders and
couplings become rows on the coordinate that they act on. A joint that gives way on purpose is a row that pulls instead
of one that holds. One that may break is written as rows, because what is shared has no multiplier within the step.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hilnode.core.signals import nearest
from plant import model
from plant.codes import BodyKind, Bound, Turning
from plant.constraint.joint_coordinate import TURN, TURN_A, TURN_B
from plant.natural.integrators import TRAPEZOIDAL, Integrator
from plant.natural.model import Form, Role
from plant.natural.shared_entities import Sharing, Vector
from plant.world.checks import WorldError
from plant.world.rotations import matrix

FITS = 1e-9  # violation of a row, in its own units, below which bodies fit together
FIRMNESS = 1e6  # penalty times beta h^2, as a share of the mass that a row feels
DRIVING = 5.0  # penalty of drives times h, alike; with few iterations less keeps them better within their bounds


@dataclass(frozen=True)
class Options:
    """How the core steps."""

    integrator: Integrator = TRAPEZOIDAL
    iterations: int = 4  # at most; fewer if the correction is small
    own_mass: bool = False  # projections with the mass matrix alone
    rounds: int = 2  # of each projection
    penalty: str = "effective"
    firmness: float = FIRMNESS
    driving: float = DRIVING
    share: bool = True  # points and vectors between bodies, where their joints allow it
    ahead: bool = True  # multipliers from the linear solve; False: from what is violated after it (Luaces eq. 2.59)
    apart: tuple[str, ...] = ()  # joints that share nothing, so that each step knows what they carry


@dataclass
class Line:
    """A linear combination of entities: entity -> share."""

    share: dict[int, float] = field(default_factory=dict)

    def __sub__(self, other: Line) -> Line:
        out = dict(self.share)
        for e, s in other.share.items():
            out[e] = out.get(e, 0.0) - s
        return Line({e: s for e, s in out.items() if abs(s) > 1e-12})

    def key(self) -> tuple[tuple[int, float], ...]:
        return tuple(sorted((e, round(s, 12)) for e, s in self.share.items()))


@dataclass
class Row:
    """A row under construction, before it is written into arrays."""

    form: Form
    role: Role
    use: tuple[int, ...]
    lines: tuple[Line, ...]
    goal: float = 0.0
    mass: float = 1.0  # of the lightest body that it holds
    ratio: tuple[float, ...] = ()
    stiffness: float = 0.0
    damping: float = 0.0
    low: float = -math.inf
    high: float = math.inf
    joint: int = -1
    slot: int = -1
    actuator: int = -1
    spring: int = -1
    body: int = -1  # whose shape it keeps
    turn: int = -1  # 2 x joint + which of its turns it measures
    goal_rate: float = 0.0
    goal_acceleration: float = 0.0


class Builder:
    """Makes the arrays; see `build`."""

    def __init__(self, e: model.Engine, bodies: Sequence[str], joints: Sequence[str], options: Options) -> None:
        self.e, self.body_names, self.joint_names, self.options = e, bodies, joints, options
        if strange := sorted(set(options.apart) - set(joints)):
            raise WorldError(f"apart={strange}: no such joint: {nearest(strange[0], [j for j in joints if j])}")
        self.ground = len(e.model.body.mass)
        body, state = e.model.body, e.data.state
        prescribed = [int(k) != BodyKind.DYNAMIC for k in body.kind] + [True]
        sizes = [_size(body.mass[b], body.inertia[b]) for b in range(self.ground)] + [1.0]
        self.sharing = Sharing(prescribed, sizes)
        self.pos = [*state.pos, np.zeros(3)]
        self.rot = [*(matrix(q) for q in state.quat), np.eye(3)]
        self.lines: dict[tuple[tuple[int, float], ...], int] = {}
        self.line_list: list[Line] = []
        self.rows: list[Row] = []
        self.seen: set[tuple[int, int]] = set()
        self.measures: dict[tuple[int, int], int] = {}  # rows that measure for a sum
        self.shared: set[tuple[int, str]] = set()  # (joint, "point" or "axis" or "turn")

    def body(self, number: int) -> int:
        return self.ground if number < 0 else int(number)

    def run(self) -> Builder:
        """All of it."""
        joint = self.e.model.joint
        live = [j for j, name in enumerate(self.joint_names) if name and joint.on[j]]
        if self.options.share:
            for j in live:
                self._share(j)
        for b in range(self.ground):
            if not self.sharing.frames[b].prescribed:
                self.sharing.complete(b)
        self._spread_frames()
        for b in range(self.ground):
            if not self.sharing.frames[b].prescribed:
                self._rigid(b)
        for j in live:
            self._joint(j)
        self._actuators()
        self._springs()
        self._couplings()
        return self

    def masses(self, thicker: float = 0.0) -> NDArray[np.float64]:
        """Mass matrices of bodies, or of bodies that are a little thicker than they are."""
        body = self.e.model.body
        out = np.zeros((self.ground + 1, 4, 4))
        for b in range(self.ground):
            if self.sharing.frames[b].prescribed:
                continue
            tensor = body.inertia[b]
            spread = np.zeros((4, 4))
            spread[0, 0] = body.mass[b]
            spread[1:, 1:] = (0.5 + thicker) * np.trace(tensor) * np.eye(3) - tensor
            out[b] = self.part[b] @ spread @ self.part[b].T
        return out

    # features of joints

    def _features(self, j: int, side: int) -> tuple[int, Vector, NDArray[np.float64]]:
        """Body, anchor and joint axes (by columns) in its axes."""
        joint = self.e.model.joint
        b = int((joint.a, joint.b)[side][j])
        return self.body(b), (joint.pa, joint.pb)[side][j], matrix((joint.qa, joint.qb)[side][j])

    def _locked(self, j: int) -> list[int]:
        axis = self.e.model.joint.axis[j]
        return [int(a) for a in axis if a >= 0]

    def _share(self, j: int) -> None:
        joint = self.e.model.joint
        if self.joint_names[j] in self.options.apart:
            return
        if not joint.rigid[j] or math.isfinite(joint.strength[j]) or math.isfinite(joint.twist[j]):
            return
        a, pa, ra = self._features(j, 0)
        b, pb, rb = self._features(j, 1)
        if {0, 1, 2} <= set(self._locked(j)) and self.sharing.share(a, _point(pa), b, _point(pb)):
            self.shared.add((j, "point"))
        turning = int(joint.turning[j])
        if turning == Turning.ONE_FREE and self.sharing.share(a, _vector(ra[:, 2]), b, _vector(rb[:, 2])):
            self.shared.add((j, "axis"))
        if turning == Turning.NONE_FREE:
            done = [self.sharing.share(a, _vector(ra[:, k]), b, _vector(rb[:, k])) for k in range(3)]
            if sum(done) >= 2:
                self.shared.add((j, "turn"))

    # lines

    def _spread_frames(self) -> None:
        """Fill `made`, `part`, `of` of all bodies; the ground and bodies with prescribed motion get known entities."""
        n = self.ground + 1
        self.made, self.part, self.of = np.zeros((n, 4, 4)), np.zeros((n, 4, 4)), np.zeros((n, 4), np.int64)
        for b, frame in enumerate(self.sharing.frames):
            if b < self.ground and self.e.model.body.kind[b] == BodyKind.ABSENT:
                continue
            if frame.prescribed:
                frame.rows, frame.entity = [], []
                for k in range(4):
                    row = np.eye(4)[k]
                    number = self.sharing.new()
                    self.sharing.entities[number].owner = b
                    self.sharing.entities[number].local = row
                    frame.rows.append(row)
                    frame.entity.append(number)
            self.made[b] = np.array(frame.rows)
            self.part[b] = np.linalg.inv(self.made[b]).T
            self.of[b] = [self.sharing.find(x) for x in frame.entity]

    def line(self, body: int, row: Vector) -> Line:
        """A point or a direction of a body in terms of its entities."""
        shares = self.part[body] @ row
        out = Line()
        for e, s in zip(self.of[body], shares, strict=True):
            if abs(s) > 1e-12:
                out.share[int(e)] = out.share.get(int(e), 0.0) + float(s)
        return out

    def use(self, line: Line) -> int:
        """Number of a combination."""
        key = line.key()
        if key not in self.lines:
            self.lines[key] = len(self.line_list)
            self.line_list.append(line)
        return self.lines[key]

    def is_free(self, lines: Iterable[Line]) -> bool:
        """Whether anything in these lines can move."""
        return any(self.sharing.entities[e].owner is None for line in lines for e in line.share)

    # rows

    def add(self, form: Form, role: Role, *lines: Line, **rest: object) -> int:
        self.rows.append(Row(form, role, tuple(self.use(line) for line in lines), lines, **rest))  # type: ignore[arg-type]
        return len(self.rows) - 1

    def _mass(self, *bodies: int) -> float:
        """Of the lightest of these that can move; 1 if none of them can."""
        masses = (float(self.e.model.body.mass[b]) for b in bodies if not self.sharing.frames[b].prescribed)
        return min(masses, default=1.0)

    def _place(self, line: Line) -> Vector:
        """A combination of known entities, where they are now."""
        out = np.zeros(3)
        for e, s in line.share.items():
            thing = self.sharing.entities[e]
            assert thing.owner is not None
            out += s * (thing.local[0] * self.pos[thing.owner] + self.rot[thing.owner] @ thing.local[1:])
        return out

    def _check(self, form: Form, lines: Sequence[Line], goal: float, part: int, who: str) -> None:
        """Refuse an equation between points and vectors that nothing can move, if it does not hold."""
        at = [self._place(line) for line in lines]
        if form == Form.PART:
            value = float(at[0][part])
        else:
            value = float(np.linalg.norm(at[0]) if form == Form.LENGTH else at[0] @ at[1])
        if not abs(value - goal) < FITS * max(1.0, abs(goal)):
            raise WorldError(
                f"{who} cannot be closed: all that it touches is held in place, and {abs(value - goal):.3g} is left; "
                "place it where it fits"
            )

    def of_body(self, b: int) -> str:
        """A body by its name and those of its joints."""
        joint = self.e.model.joint
        mine = [n for j, n in enumerate(self.joint_names) if n and joint.on[j] and b in (joint.a[j], joint.b[j])]
        return f"body {self.body_names[b]!r} between joints {', '.join(map(repr, mine))}"

    def _rigid(self, b: int) -> None:
        """Six rows that keep lengths and angles of a body's vectors; those that another body has are left out."""
        frame = self.sharing.frames[b]
        origin = next(k for k, r in enumerate(frame.rows) if r[0])
        ways = [r - r[0] * frame.rows[origin] for k, r in enumerate(frame.rows) if k != origin]
        lines = [self.line(b, w) for w in ways]
        for i in range(3):
            for k in range(i, 3):
                pair = (self.use(lines[i]), self.use(lines[k]))
                pair = (min(pair), max(pair))
                goal = float(ways[i][1:] @ ways[k][1:])
                if not self.is_free((lines[i], lines[k])):
                    self._check(Form.DOT, (lines[i], lines[k]), goal, 0, self.of_body(b))
                    continue
                if pair in self.seen:
                    continue
                self.seen.add(pair)
                self.add(Form.DOT, Role.HOLD, lines[i], lines[k], goal=goal, mass=self._mass(b), body=b)

    def _hold(self, j: int, slot: int, form: Form, *lines: Line, goal: float = 0.0, part: int = 0) -> None:
        """A locked row of joint `j`: held, or pulled if the joint gives way."""
        joint = self.e.model.joint
        a, b = self.body(joint.a[j]), self.body(joint.b[j])
        if not self.is_free(lines):
            if joint.rigid[j] and not (self.sharing.frames[a].prescribed and self.sharing.frames[b].prescribed):
                self._check(form, lines, goal, part, f"joint {self.joint_names[j]!r}")
            return
        at = self.add(form, Role.HOLD, *lines, goal=goal, mass=self._mass(a, b), joint=j, slot=slot)
        row = self.rows[at]
        if form == Form.PART:
            row.use = (row.use[0], part)
        if not joint.rigid[j]:
            row.role = Role.PULL
            row.stiffness, row.damping = _spring_of(joint.sigma[j, slot], joint.upsilon[j, slot], self.e.model.setup.h)

    def _joint(self, j: int) -> None:
        joint = self.e.model.joint
        a, pa, ra = self._features(j, 0)
        b, pb, rb = self._features(j, 1)
        locked = self._locked(j)
        apart = self.line(b, _point(pb)) - self.line(a, _point(pa))
        axes_a = [self.line(a, _vector(ra[:, k])) for k in range(3)]
        axes_b = [self.line(b, _vector(rb[:, k])) for k in range(3)]
        if {0, 1, 2} <= set(locked):
            if (j, "point") not in self.shared and apart.share:
                for k in range(3):
                    self._hold(j, locked.index(k), Form.PART, apart, part=k)
        else:
            for k in (0, 1, 2):
                if k in locked:
                    self._hold(j, locked.index(k), Form.DOT, apart, axes_a[k])
        if model.DISTANCE in locked:
            self._hold(j, locked.index(model.DISTANCE), Form.LENGTH, apart, goal=float(joint.length[j]))
        turning, first = int(joint.turning[j]), sum(1 for x in locked if x < 3)
        if turning == Turning.ONE_FREE and (j, "axis") not in self.shared:
            for i in range(2):
                self._hold(j, first + i, Form.DOT, axes_b[2], axes_a[i])
        if turning == Turning.TWO_FREE:
            self._hold(j, first, Form.DOT, axes_b[1], axes_a[0])
        if turning == Turning.NONE_FREE and (j, "turn") not in self.shared:
            for i in range(3):
                self._hold(j, first + i, Form.DOT, axes_b[(i + 1) % 3], axes_a[(i + 2) % 3])

    def measure(self, j: int, axis: int, who: str) -> int:
        """The number of a row that does nothing but measure a free coordinate of a joint."""
        if (j, axis) not in self.measures:
            self.rows.append(self.coordinate(j, axis, who))
            self.measures[j, axis] = len(self.rows) - 1
        return self.measures[j, axis]

    def coordinate(self, j: int, axis: int, who: str) -> Row:
        """A row over a free coordinate of a joint; see `plant.constraint.joint_coordinate` for the numbers of axes."""
        a, pa, ra = self._features(j, 0)
        b, pb, rb = self._features(j, 1)
        axes_a = [self.line(a, _vector(ra[:, k])) for k in range(3)]
        axes_b = [self.line(b, _vector(rb[:, k])) for k in range(3)]
        lines: tuple[Line, ...]
        if axis < 3:
            apart = self.line(b, _point(pb)) - self.line(a, _point(pa))
            form, turn, lines = Form.DOT, -1, (apart, axes_a[axis])
        elif axis == TURN:
            form, turn, lines = Form.ANGLE, 2 * j, (axes_b[0], axes_a[0], axes_a[1])
        elif axis == TURN_A:
            form, turn, lines = Form.ANGLE, 2 * j, (axes_b[1], axes_a[1], axes_a[2])
        elif axis == TURN_B:
            form, turn, lines = Form.ANGLE, 2 * j + 1, (axes_a[0], axes_b[0], axes_b[2])
        else:
            raise WorldError(
                f"{who} turns joint {self.joint_names[j]!r} about an axis that has no angle: the core in natural "
                "coordinates takes slides, hinges and universal joints; use stepper='spook' for this one"
            )
        return Row(form, Role.OFF, tuple(map(self.use, lines)), lines, mass=self._mass(a, b), turn=turn)

    def _actuators(self) -> None:
        act, target, joint = self.e.model.actuator, self.e.data.target, self.e.model.joint
        for k in range(len(act.on)):
            j = int(act.joint[k])
            if not act.on[k] or not joint.on[j]:
                continue
            row, kind = self.coordinate(j, int(act.axis[k]), f"actuator {k}"), Bound(int(act.kind[k]))
            row.role, row.actuator = Role.DRIVE, k
            if kind == Bound.LIMIT:
                row.role = Role.STOP
                row.low, row.high = (-math.inf, 0.0) if act.side[k] > 0 else (0.0, math.inf)
                row.damping = float(act.bounce[k])
            elif kind == Bound.SPRING:
                row.role = Role.PULL
                row.stiffness, row.damping = _spring_of(act.sigma[k], act.upsilon[k], self.e.model.setup.h)
            elif kind == Bound.HYDRAULIC:
                row.role = Role.OIL
            row.goal = float(target.position[k])
            if kind == Bound.GUIDE:  # told for the end of the coming step; here it is at its beginning
                h, acceleration = self.e.model.setup.h, float(target.acceleration[k])
                row.role, row.goal_acceleration = Role.HOLD, acceleration
                row.goal_rate = float(target.speed[k]) - h * acceleration
                row.goal -= h * (row.goal_rate + 0.5 * h * acceleration)
            self.rows.append(row)

    def _springs(self) -> None:
        spring, kind = self.e.model.spring, self.e.model.body.kind
        for k in np.flatnonzero(spring.on).tolist():
            a, b = self.body(spring.a[k]), self.body(spring.b[k])
            if any(x != self.ground and kind[x] == BodyKind.ABSENT for x in (a, b)):
                continue
            apart = self.line(b, _point(spring.pb[k])) - self.line(a, _point(spring.pa[k]))
            self.add(Form.LENGTH, Role.TABLE, apart, mass=self._mass(a, b), spring=k)

    def _couplings(self) -> None:
        coupling = self.e.model.coupling
        for p in range(len(coupling.on)):
            if not coupling.on[p]:
                continue
            terms = [
                (self.measure(int(j), int(x), f"coupling {p}"), float(r))
                for j, x, r in zip(coupling.joint[p], coupling.axis[p], coupling.ratio[p], strict=True)
                if j >= 0
            ]
            use = tuple(t for t, _ in terms)
            row = Row(Form.SUM, Role.HOLD, use, (), ratio=tuple(r for _, r in terms), mass=self.rows[use[0]].mass)
            row.goal = float(self.e.data.coupled.offset[p])
            self.rows.append(row)


def _size(mass: float, inertia: NDArray[np.float64]) -> float:
    """Radius of gyration: the size by which places in a body are compared."""
    return max(1e-9, math.sqrt(max(0.0, float(np.trace(inertia))) / mass)) if mass > 0 else 1.0


def _point(p: Vector) -> Vector:
    return np.array([1.0, *p])


def _vector(v: Vector) -> Vector:
    return np.array([0.0, *v])


def _spring_of(sigma: float, upsilon: float, h: float) -> tuple[float, float]:
    """Stiffness and damping from regularisation and stabilisation (SPOOK eq. 9, the other way round)."""
    stiffness = 4.0 * upsilon / (sigma * h * h)
    return stiffness, stiffness * (1.0 / upsilon - 1.0) * h / 4.0

"""The core inside an engine: built, penalties chosen, bodies assembled; rebuilt after a live change.

A change (a body more or less, a joint let go) describes the mechanism anew and writes it over the arrays that were
reserved at compile. Points and vectors are counted by the bodies that use them (Luaces 5.4.1): one that nobody uses any
more is gone from the description, one that a joint no longer shares is there once for each body.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hilnode.core.jit import kernel
from hilnode.core.struct import Struct
from plant import model
from plant.natural import model as natural
from plant.natural.arrays import fill, new_arrays
from plant.natural.builder import FITS, Builder, Options
from plant.natural.model import Penalty, Role
from plant.natural.step import TANGENT_FULL, look_stage
from plant.stages import call_stage, compiled_stage
from plant.world.checks import WorldError

THICKER = 0.02  # share of the trace of the inertia
DEPENDENT = 1e-10  # rows that hold are dependent below this, over the largest
FIXED = 1e-9  # of what a drive could move alone: less is held fast


class Core:
    """The arrays in natural coordinates beside those of an engine."""

    def __init__(self, content: model.Engine, bodies: Sequence[str], joints: Sequence[str], options: Options) -> None:
        i = options.integrator
        method = natural.Method(
            content.model.setup.h, *i, options.iterations, int(options.own_mass), options.rounds, int(options.ahead)
        )
        self.options = options
        self.content = new_arrays(content, method)
        self.record = Struct(self.content)
        self.shared: frozenset[str] = frozenset()  # joints that are shared points and vectors: they have no multipliers
        setup = content.model.setup._replace(core=self.record.address)
        self.engine = content._replace(model=content.model._replace(setup=setup))
        self._own = Struct(self.engine)
        self.renew(bodies, joints)

    def renew(self, bodies: Sequence[str], joints: Sequence[str]) -> None:
        """Describe the mechanism as it is now. Bodies that do not fit together are moved until they do, or refused."""
        builder = Builder(self.engine, bodies, joints, self.options).run()
        fill(self.content, builder)
        look = compiled_stage(look_stage).address
        _run(look, self._own.address, 0)
        _set_penalties(self.content, builder)
        if _run(look, self._own.address, 1) == TANGENT_FULL:
            blocks = len(self.content.solution.pattern.row)
            raise WorldError(
                f"the tangent matrix of this mechanism has more than the {blocks} blocks that there is room for: "
                "so many bodies on one another are for stepper='spook'"
            )
        if not _opening(self.content) < FITS:
            raise WorldError(_what_is_open(builder, self.content))
        self.engine.data.status[model.Status.POSES_VALID] = 0
        self.shared = frozenset(joints[j] for j, _ in builder.shared)


@kernel
def _run(function, address, argument):
    return call_stage(function, address, argument)


def _held(made: natural.Natural) -> NDArray[np.float64]:
    """Violation of every row that holds; 0 for others."""
    n = int(made.row.count[0])
    off = np.abs(made.row.value[:n] - made.row.goal[:n])
    return np.where(made.row.role[:n] == Role.HOLD, np.nan_to_num(off, nan=np.inf), 0.0)


def _opening(made: natural.Natural) -> float:
    return float(_held(made).max(initial=0.0))


def _what_is_open(builder: Builder, made: natural.Natural) -> str:
    off = _held(made)
    worst = int(off.argmax())
    row = builder.rows[worst]
    if row.joint >= 0:
        who = f"joint {builder.joint_names[row.joint]!r}"
    elif row.body >= 0:
        who = builder.of_body(row.body)
    elif row.actuator >= 0:
        who = f"the guide of joint {builder.joint_names[builder.e.model.actuator.joint[row.actuator]]!r}"
    else:
        who = "a coupling"
    return (
        f"{who} cannot be closed: {off[worst]:.3g} is left when bodies are moved; place them nearer to where they fit"
    )


def _masses_felt(made: natural.Natural, masses: NDArray[np.float64]) -> NDArray[np.float64]:
    """What each row feels at the places of now: 1 / (slope M^-1 slope').

    A drive feels what its joint really moves, with all that is held fast to it: with J the rows that hold,
    1 / (slope (M^-1 - M^-1 J' (J M^-1 J')^-1 J M^-1) slope'). A light rocker that turns a heavy bucket through a closed
    loop would count as a rocker alone otherwise, and its drive would be so soft that it rings.
    """
    ent, row = made.entity, made.row
    free = np.flatnonzero((ent.known == 0) & (ent.users > 0))
    at = np.full(len(ent.known), -1)
    at[free] = np.arange(len(free))
    total = np.zeros((len(free), len(free)))
    for of, mass in zip(made.frame.of, masses, strict=True):
        k = np.flatnonzero(at[of] >= 0) if mass.any() else np.zeros(0, int)
        total[np.ix_(at[of[k]], at[of[k]])] += mass[np.ix_(k, k)]
    count = int(row.count[0])
    slopes = np.zeros((count, len(free), 3))
    for i in range(count):
        for t in range(row.first[i], row.first[i] + row.free[i]):
            slopes[i, at[row.entity[t]]] += row.slope[t]
    give = np.einsum("jk,ikc->ijc", np.linalg.inv(total), slopes).reshape(count, -1)  # M^-1 slope'
    slope = slopes.reshape(count, -1)
    loose = np.einsum("ik,ik->i", slope, give)
    held = np.flatnonzero((row.role[:count] == Role.HOLD) & (loose > 0.0))
    size = np.sqrt(loose[held])
    bound = (slope[held] @ give[held].T) / np.outer(size, size)
    for drive in np.flatnonzero(row.role[:count] == Role.DRIVE):
        across = (slope[held] @ give[drive]) / size
        left = loose[drive] - across @ np.linalg.lstsq(bound, across, rcond=DEPENDENT)[0]
        if left > FIXED * loose[drive]:
            loose[drive] = left
    return np.divide(1.0, loose, out=np.zeros(count), where=loose > 0.0)


def _set_penalties(made: natural.Natural, builder: Builder) -> None:
    """Penalty factors. `firmness` is the penalty times beta h^2 over the mass that it stands against.

    A plate or a rod has no spread of mass across itself. What its vectors feel is taken from a thicker one, or rows
    that only stand against that spread would have no penalty at all. Drives get less, and at velocity level: a stiff
    one would take the error of a prediction for a force beyond its bounds, and let go.
    """
    options, rows = builder.options, builder.rows
    kinds = {p.name.lower(): p for p in Penalty}
    if options.penalty not in kinds:
        raise WorldError(f"penalty {options.penalty!r} is not known: it is one of {', '.join(kinds)}")
    masses = np.array([r.mass for r in rows])
    if kinds[options.penalty] == Penalty.SCALAR:
        masses[:] = masses.mean() if len(masses) else 1.0
    elif kinds[options.penalty] == Penalty.EFFECTIVE:
        masses = _masses_felt(made, builder.masses(THICKER))
    h, beta = made.method.h, options.integrator.beta
    firm = np.array([options.driving / h if r.role == Role.DRIVE else options.firmness / (beta * h * h) for r in rows])
    made.row.penalty[: len(rows)] = firm * masses

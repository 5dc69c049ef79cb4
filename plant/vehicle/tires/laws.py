"""The table of tire laws: from a class of parameters to its kernels.

A law is one file: its reference, its parameters (a `Checked` dataclass with `columns` and `slopes`) and two kernels,

    <law>(p, fz, grip, half, sx, sy)    forces along and across [N], moment about the normal [N m]
    <law>_peaks(p, fz, grip)            slips along and across at which the tire begins to slide altogether

It takes an entry in LAWS and a line in each kernel here: branches on a code are what the compiler does best.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from hilnode.core.jit import kernel
from plant.vehicle.tires import composite_slip as composite_slip_law
from plant.vehicle.tires import fiala as fiala_law
from plant.vehicle.tires import magic_formula as magic_formula_law
from plant.vehicle.tires.composite_slip import composite_slip, composite_slip_peaks
from plant.vehicle.tires.fiala import fiala, fiala_peaks
from plant.vehicle.tires.magic_formula import magic_formula, magic_formula_peaks

MAGIC_FORMULA, FIALA, COMPOSITE_SLIP = 0, 1, 2


class TireLaw(Protocol):
    """Parameters of a law."""

    @property
    def peak_friction(self) -> float:
        """Largest force over load."""

    def columns(self, nominal_load: float, radius: float) -> list[float]:
        """Constants of its kernels."""

    def slopes(self, nominal_load: float) -> tuple[float, float]:
        """Force over slip at small slip and nominal load, along and across [N]."""


class Entry(NamedTuple):
    """A law in the table."""

    code: int
    parameters: type
    reference: str
    force: Any
    peaks: Any


LAWS = {
    "magic_formula": Entry(
        MAGIC_FORMULA,
        magic_formula_law.MagicFormula,
        magic_formula_law.REFERENCE,
        magic_formula,
        magic_formula_peaks,
    ),
    "fiala": Entry(FIALA, fiala_law.Fiala, fiala_law.REFERENCE, fiala, fiala_peaks),
    "composite_slip": Entry(
        COMPOSITE_SLIP,
        composite_slip_law.CompositeSlip,
        composite_slip_law.REFERENCE,
        composite_slip,
        composite_slip_peaks,
    ),
}


def code_of(law: object) -> int:
    """The code of the law whose parameters these are."""
    for entry in LAWS.values():
        if isinstance(law, entry.parameters):
            return entry.code
    known = ", ".join(entry.parameters.__name__ for entry in LAWS.values())
    raise ValueError(f"{law!r} are not the parameters of a tire law: {known}")


@kernel
def law_peaks(code, p, fz, grip):
    """Slips along and across at which a tire begins to slide."""
    if code == MAGIC_FORMULA:
        return magic_formula_peaks(p, fz, grip)
    if code == FIALA:
        return fiala_peaks(p, fz, grip)
    return composite_slip_peaks(p, fz, grip)


@kernel
def law_force(code, p, fz, grip, half, sx, sy):
    """Forces along and across [N] and the moment about the normal [N m]."""
    if code == MAGIC_FORMULA:
        return magic_formula(p, fz, grip, half, sx, sy)
    if code == FIALA:
        return fiala(p, fz, grip, half, sx, sy)
    return composite_slip(p, fz, grip, half, sx, sy)

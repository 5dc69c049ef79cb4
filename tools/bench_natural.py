"""The core in natural coordinates beside the velocity-level one: the same machines, dt = 1 ms, taking turns; medians.

python tools/bench_natural.py
"""

from __future__ import annotations

import os

from bench_engine import DT, STEPS, chain, check, excavator, in_turns
from rich.console import Console
from rich.table import Table

from plant.engine.compile import compile_world
from plant.natural.builder import Options
from plant.natural.model import Report
from plant.world.world import World


def compare(world: World, iterations: int) -> tuple[float, float, float, float]:
    """Microseconds a step in natural coordinates and at velocity level; the largest gap [m], the last correction."""
    natural = compile_world(world, DT, stepper="ali3p", natural=Options(iterations=iterations))
    other = compile_world(world, DT)
    check(natural.step(200))
    check(other.step(200))
    mine, theirs, gap = in_turns(lambda: check(natural.step(STEPS)), lambda: check(other.step(STEPS)), natural.gap)
    assert natural.core is not None
    return mine, theirs, gap, float(natural.core.content.report[Report.RESIDUAL])


def main() -> None:
    compile_world(excavator(), DT, stepper="ali3p").step()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    table = Table("machine", "iterations", r"ali3p \[us]", r"spook \[us]", "ratio", r"gap \[mm]", "correction", "bound")
    for name, world, iterations, bound in (
        ("14-body excavator, 8 contacts", excavator(), 2, "<= 150 us, <= 4x"),
        ("14-body excavator, 8 contacts", excavator(), 3, ""),
        ("30-link hinge chain", chain(30, hinged=True), 4, ""),
        ("30-link ball chain", chain(30), 4, ""),
    ):
        mine, theirs, gap, left = compare(world, iterations)
        cells = f"{mine:.1f}", f"{theirs:.1f}", f"{mine / theirs:.2f}", f"{gap * 1e3:.5f}", f"{left:.1e}"
        table.add_row(name, str(iterations), *cells, bound)
    Console().print(table)


if __name__ == "__main__":
    main()

"""Time of a step of a chain of hinges in joint coordinates against MuJoCo's, turn by turn on one core.

    python tools/bench_articulated.py [--rounds 20] [--steps 200] [--links 10 30 100 300] [--integrator euler]

Both do the same: semi-implicit Euler at 1 ms, gravity, no contacts, no limits, no damping, the same masses and frames,
and both run all steps of a turn in one call of compiled code.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time

import mujoco
import numpy as np

from plant.reduced.compile import Tree, compile_tree
from plant.world.world import World

LENGTH, MASS, MOMENTS = 0.1, 0.1, (1e-4, 1.2e-4, 2e-5)
AXES = ((0.0, 1.0, 0.0), (1.0, 0.0, 0.0))
BEND = 1.0  # [rad] from the first link to the last, as the chain is let go


def world_chain(links: int) -> World:
    world, above = World(), None
    for k in range(links):
        name = world.body(f"link{k}", mass=MASS, inertia=MOMENTS, pos=(0, 0, -LENGTH * k), com=(0, 0, -LENGTH / 2))
        world.hinge(f"hinge{k}", above, name, at=(0, 0, -LENGTH * k), axis=AXES[k % 2])
        above = name
    return world


def mujoco_chain(links: int) -> mujoco.MjModel:
    moments = " ".join(map(str, MOMENTS))
    text = '<mujoco><option timestep="0.001" integrator="Euler" gravity="0 0 -9.80665">'
    text += '<flag contact="disable" constraint="disable"/></option><worldbody>'
    for k in range(links):
        axis = " ".join(map(str, AXES[k % 2]))
        text += f'<body pos="0 0 {-LENGTH if k else 0}"><joint type="hinge" axis="{axis}"/>'
        text += f'<inertial pos="0 0 {-LENGTH / 2}" mass="{MASS}" diaginertia="{moments}"/>'
    return mujoco.MjModel.from_xml_string(text + "</body>" * links + "</worldbody></mujoco>")


def measure(links: int, rounds: int, steps: int, options: dict[str, str]) -> tuple[float, float, Tree, mujoco.MjData]:
    """Medians [s per step] of ours and MuJoCo's."""
    tree = compile_tree(world_chain(links), 0.001, **options)  # type: ignore[arg-type]
    model = mujoco_chain(links)
    data = mujoco.MjData(model)
    tree.q[:] = BEND / links
    tree.restart()
    data.qpos[:] = BEND / links
    ours, theirs = [], []
    for _ in range(rounds + 1):
        began = time.perf_counter()
        if tree.step(steps) != 0:
            raise SystemExit(f"{links} links: the state is not finite any more")
        between = time.perf_counter()
        mujoco.mj_step(model, data, nstep=steps)
        ours.append((between - began) / steps)
        theirs.append((time.perf_counter() - between) / steps)
    return statistics.median(ours[1:]), statistics.median(theirs[1:]), tree, data


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--links", type=int, nargs="+", default=[10, 30, 100, 300])
    parser.add_argument("--integrator", default="euler", choices=("euler", "midpoint", "rk4"))
    parser.add_argument("--method", default="aba", choices=("aba", "crba"))
    given = parser.parse_args()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    options = {"integrator": given.integrator, "method": given.method}
    print(f"MuJoCo {mujoco.__version__}, ours {options}; medians of {given.rounds} turns of {given.steps} steps")
    print("links   ours [us]   MuJoCo [us]   ratio   largest difference of q [rad]")
    for links in given.links:
        ours, theirs, tree, data = measure(links, given.rounds, given.steps, options)
        apart = float(np.abs(tree.q - data.qpos).max())
        print(f"{links:5d} {1e6 * ours:11.2f} {1e6 * theirs:13.2f} {ours / theirs:7.3f}   {apart:.1e}")


if __name__ == "__main__":
    main()

"""A plant in C through the same pointer, against the same plant in numba, bit for bit."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import plant as plant_package
from hilnode.core.signals import Signal
from hilnode.core.struct import F1, Struct, viewer
from hilnode.shared.codes import Cause, Command, Event
from hilnode.shared.row import State
from plant.abi import DIVERGED, Plant, Task, step_function

from .bench import config, stimulus

SOURCE = r"""
#include "hilnode_plant.h"
#include <stddef.h>

/* A driven van der Pol oscillator, semi-implicit Euler. */
typedef struct { double x, v, dt; } oscillator;

int64_t step(void *self, int64_t n, const double *params, const double *inputs, double *outputs, double *poses)
{
    oscillator *o = self;
    o->v += o->dt * (params[0] * (1.0 - o->x * o->x) * o->v - o->x + inputs[0]);
    o->x += o->dt * o->v;
    if (o->x * o->x > 1e6)
        return HILNODE_DIVERGED;
    outputs[0] = o->x;
    outputs[1] = o->v;
    for (int k = 0; k < 7; k++)
        poses[k] = k == 0 ? o->x : k == 3 ? 1.0 : 0.0;
    return HILNODE_OK;
}

int64_t reset(void *self, int64_t n, const double *params, const double *inputs, double *outputs, double *poses)
{
    oscillator *o = self;
    o->x = 0.5;
    o->v = 0.0;
    outputs[0] = o->x;
    outputs[1] = o->v;
    return HILNODE_OK;
}

static hilnode_step check_step = step, check_reset = reset;  /* the header's type is the one above */
int all_there(void) { return check_step != NULL && check_reset != NULL; }
"""


class Oscillator(NamedTuple):
    """The C struct again; all its members are doubles."""

    state: F1  # x, v
    dt: float


_view = viewer(Oscillator)


@step_function
def _step(self, n, params, inputs, outputs, poses):  # type: ignore[no-untyped-def]
    o = _view(self)
    x, v = o.state[0], o.state[1]
    v += o.dt * (params[0] * (1.0 - x * x) * v - x + inputs[0])
    x += o.dt * v
    o.state[0], o.state[1] = x, v
    if x * x > 1e6:
        return DIVERGED
    outputs[0], outputs[1] = x, v
    for k in range(7):
        poses[k] = 0.0
    poses[0], poses[3] = x, 1.0
    return 0


@step_function
def _reset(self, n, params, inputs, outputs, poses):  # type: ignore[no-untyped-def]
    o = _view(self)
    o.state[0], o.state[1] = 0.5, 0.0
    outputs[0], outputs[1] = 0.5, 0.0
    return 0


def make(step: int, reset: int, memory: int, owner: object) -> Plant:
    return Plant(
        "oscillator",
        1e-3,
        (Signal("force"),),
        (Signal("x"), Signal("v")),
        (Task("oscillator", step, memory),),
        (Signal("mu", default=3.0),),
        ("mass",),
        (reset, memory),
        owner=owner,
    )


def in_numba() -> Plant:
    record = Struct(Oscillator(np.array([0.5, 0.0]), 1e-3))
    return make(_step.address, _reset.address, record.address, record)


def in_c(folder: Path) -> Plant:
    (folder / "oscillator.c").write_text(SOURCE)
    header = Path(plant_package.__file__).parent
    flags = ["-std=c11", "-O2", "-ffp-contract=off", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror"]
    subprocess.run(
        ["gcc", *flags, "-shared", "-fPIC", f"-I{header}", "-o", "oscillator.so", "oscillator.c"],
        cwd=folder,
        check=True,
    )
    library = ctypes.CDLL(str(folder / "oscillator.so"))
    memory = np.array([0.5, 0.0, 1e-3])

    def address(name: str) -> int:
        found = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
        assert found
        return found

    return make(address("step"), address("reset"), memory.ctypes.data, (library, memory))


@pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")
def test_plant_in_c_is_the_plant_in_numba(bench, tmp_path):
    runs = []
    for plant in (in_c(tmp_path), in_numba()):
        b = bench(
            config(stimulus("chirp", "force", amplitude=2.0, f0_hz=0.1, f1_hz=5.0, seconds=5.0)), plant, last_tick=6000
        )
        b.start()
        b.at(3000, Command.PARAMETER, 0, [1.5])
        b.run()
        assert (b.rows["state"] == State.RUNNING).all()
        runs.append(b.rows)
    for name in ("x", "v", "poses", "step", "status"):
        assert runs[0][name].tobytes() == runs[1][name].tobytes()
    assert np.ptp(runs[0]["x"]) > 2.0


@pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")
def test_status_and_reset_of_a_plant_in_c(bench, tmp_path):
    b = bench(config(stimulus("constant", "force", value=1e9)), in_c(tmp_path), last_tick=40)
    b.start()
    b.at(20, Command.CLEAR)
    b.at(21, Command.ARM)
    b.run()
    tripped = b.heard(Event.TRIP)[0]
    assert (tripped.index, tripped.value) == (Cause.PLANT, DIVERGED)
    assert "plausible" in tripped.sentence
    assert b.rows["x"][21] == 0.5
    assert b.rows["step"][21] == 0

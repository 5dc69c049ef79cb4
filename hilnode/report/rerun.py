"""Run a recording again: the same plant, the same inputs, step by step, and every output bit for bit the same.

The plant is built anew from the recorded config. Each row tells the inputs as the plant took them and whether it was
stepped; the recorded commands tell when parameters were changed and the plant was reset. Outputs and poses that come
out are compared with the recorded ones as 64-bit patterns, in every row, so that nothing is excused as rounding.
"""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hilnode.config.config import Config
from hilnode.node.build_info import made_by
from hilnode.shared.codes import Answer, Command
from hilnode.shared.command_record import CommandRow
from hilnode.shared.row import POSE, Col, Flag, Schema
from plant import registry as plant_kinds
from plant.abi import Plant

if TYPE_CHECKING:
    from bridge.record.run_file import Run

_STEP = ctypes.CFUNCTYPE(
    ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p
)
_POSE_PARTS = ("x", "y", "z", "qw", "qx", "qy", "qz")


class CannotRerun(RuntimeError):
    """The recording does not hold what is needed; the message says what is missing."""


@dataclass(frozen=True)
class Difference:
    """The first word that came out otherwise."""

    tick: int
    signal: str
    recorded: float
    again: float

    def __str__(self) -> str:
        return (
            f"tick {self.tick}: {self.signal} was {self.recorded!r} ({_bits(self.recorded)}), "
            f"and is {self.again!r} ({_bits(self.again)}) this time"
        )


@dataclass(frozen=True)
class Verdict:
    """What came of it: `rows` were run again, `steps` of them with a plant step, up to the difference if any."""

    rows: int
    steps: int
    difference: Difference | None
    gap: str  # why it could not go on to the end, or nothing

    @property
    def identical(self) -> bool:
        """Every row of the recording was compared, and every bit was the same."""
        return self.difference is None and not self.gap


class _Stepper:
    """The plant outside the tick, with its vectors: it does to them what the tick does."""

    def __init__(self, plant: Plant, schema: Schema, parameters: NDArray[np.float64]) -> None:
        self.plant = plant
        self.step = 0
        self.bad = False  # it failed: the next arming resets it
        self.inputs = np.zeros(max(1, len(schema.inputs)))
        self.results = np.zeros(len(schema.outputs) + POSE * len(schema.bodies))
        self._outputs = np.zeros(max(1, len(schema.outputs)))
        self._poses = np.zeros(max(1, POSE * len(schema.bodies)))
        self.parameters = parameters if len(parameters) else np.zeros(1)
        self._n_out = len(schema.outputs)
        self._tasks = [(_STEP(t.address), t.self_address, t.every, t.phase) for t in plant.tasks]
        vectors = (self.parameters, self.inputs, self._outputs, self._poses)
        self._vectors = [v.ctypes.data for v in vectors]

    def reset(self) -> None:
        """As the tick does at its start, when it is asked to, and when it arms after the plant has failed."""
        address, own = self.plant.reset
        if not address:
            return
        status = _STEP(address)(own, 0, *self._vectors)
        if status:
            raise CannotRerun(f"the plant could not be reset: {self.plant.explain(status)}")
        self.step, self.bad = 0, False
        self._show()

    def advance(self) -> int:
        """One step with the inputs that stand there; the plant's status."""
        for function, own, every, phase in self._tasks:
            if self.step % every == phase:
                status = int(function(own, self.step, *self._vectors))
                if status:
                    self.bad = True
                    self._show()
                    return status
        self.step += 1
        self._show()
        self.bad = self.bad or not np.isfinite(self._outputs[: self._n_out]).all()
        return 0

    def _show(self) -> None:
        self.results[: self._n_out] = self._outputs[: self._n_out]
        self.results[self._n_out :] = self._poses[: len(self.results) - self._n_out]


class _Commands:
    """Recorded commands that changed the plant, by the tick at whose edge they took effect."""

    def __init__(self, run: Run) -> None:
        self._events: Iterator[dict[str, Any]] = iter(run.events())
        self._next = next(self._events, None)
        self._number = int(run.about["first_event"]) - 1
        self._tick = -1  # of the last event

    def until(self, tick: int) -> Iterator[CommandRow]:
        """Those of this tick, in order."""
        while self._next is not None:
            if self._next["number"] != self._number + 1 and tick >= min(self._tick + 1, self._next["tick"]):
                raise CannotRerun(
                    f"{self._next['number'] - self._number - 1} events between ticks {self._tick} and "
                    f"{self._next['tick']} were not recorded, and there may be commands among them"
                )
            if self._next["tick"] > tick:
                return
            event, self._next = self._next, next(self._events, None)
            self._number, self._tick = event["number"], event["tick"]
            if event["event"] == "command" and event["index"] == Answer.DONE:
                if "order" not in event:
                    raise CannotRerun(f"tick {event['tick']}: what was commanded then was not recorded")
                yield CommandRow.from_hex(event["order"])


def build(run: Run) -> _Stepper:
    """The plant of the recorded config, at its start."""
    if tasks := run.about["tasks"]:
        raise CannotRerun(
            f"the node ran tasks that a script gave it ({', '.join(tasks)}): they are not in the recording"
        )
    config = Config.model_validate_json(json.dumps(run.about["config"]))
    plant = plant_kinds.create(config.plant.kind, config.node.period_ns * 1e-9, config.plant.options)
    for what, now, then in (
        ("inputs", plant.inputs, run.schema.inputs),
        ("outputs", plant.outputs, run.schema.outputs),
    ):
        if [s.name for s in now] != [s.name for s in then]:
            raise CannotRerun(f"the plant {config.plant.kind} has other {what} today than in the recording")
    if plant.bodies != run.schema.bodies or [s.name for s in plant.parameters] != list(run.about["parameters"]):
        raise CannotRerun(f"the plant {config.plant.kind} has other bodies or parameters today than in the recording")
    return _Stepper(plant, run.schema, np.array(list(run.about["parameters"].values()), float))


def rerun(run: Run, progress: Callable[[float], None] = lambda share: None) -> Verdict:
    """Run it again. `progress` is told the share that is done."""
    stepper, commands, s = build(run), _Commands(run), run.schema
    words = [*range(s.at_outputs, s.at_commands), *range(s.at_poses, s.words)]
    stepper.reset()
    rows_done = steps = next_tick = 0
    end = max(1e-9, run.duration_s)
    for rows in run.rows():
        ticks = rows[:, Col.TICK]
        whole = int(np.argmax(jumps)) if (jumps := ticks != np.arange(next_tick, next_tick + len(ticks))).any() else -1
        part = rows if whole < 0 else rows[:whole]
        try:
            again, status, stepped = _again(stepper, commands, part, s)
        except CannotRerun as error:
            return Verdict(rows_done, steps, None, str(error))
        steps += stepped
        difference = _compare(part, words, again, status, s)
        if difference:
            return Verdict(rows_done + difference.tick - next_tick, steps, difference, "")
        rows_done += len(part)
        if whole >= 0:
            missing = int(ticks[whole]) - next_tick - whole
            return Verdict(rows_done, steps, None, f"{missing} rows from tick {next_tick + whole} on were not recorded")
        next_tick += len(part)
        progress(float(run.seconds(rows[-1:])[0]) / end)
    return Verdict(rows_done, steps, None, "")


def _again(
    stepper: _Stepper, commands: _Commands, rows: NDArray[np.int64], s: Schema
) -> tuple[NDArray[np.float64], NDArray[np.int64], int]:
    """Outputs and poses, and status, for each row; and how often the plant was stepped."""
    results = np.empty((len(rows), len(stepper.results)))
    statuses = np.zeros(len(rows), np.int64)
    inputs = rows[:, s.at_inputs : s.at_ages].view(np.float64)
    moves = (rows[:, Col.FLAGS] & Flag.PAUSED) == 0
    n = len(s.inputs)
    for k, tick in enumerate(rows[:, Col.TICK].tolist()):
        for command in commands.until(tick):
            if command.op == Command.PARAMETER:
                stepper.parameters[command.index] = command.params[0]
            elif command.op == Command.RESET or (command.op == Command.ARM and stepper.bad):
                stepper.reset()
        stepper.inputs[:n] = inputs[k]
        if moves[k]:
            statuses[k] = stepper.advance()
        results[k] = stepper.results
    return results, statuses, int(moves.sum())


def _compare(
    rows: NDArray[np.int64], words: list[int], again: NDArray[np.float64], status: NDArray[np.int64], s: Schema
) -> Difference | None:
    recorded = rows[:, words]
    wrong = recorded != again.view(np.int64)
    other = rows[:, Col.STATUS] != status
    if not wrong.any() and not other.any():
        return None
    k = int(np.argmax(wrong.any(axis=1) | other))
    tick = int(rows[k, Col.TICK])
    if other[k]:
        return Difference(tick, "the plant's status", float(rows[k, Col.STATUS]), float(status[k]))
    j = int(np.argmax(wrong[k]))
    names = [x.name for x in s.outputs] + [f"{body}.{part}" for body in s.bodies for part in _POSE_PARTS]
    return Difference(tick, names[j], float(recorded[k, j : j + 1].view(np.float64)[0]), float(again[k, j]))


def _bits(value: float) -> str:
    return f"0x{int(np.float64(value).view(np.uint64)):016x}"


def explain(run: Run, verdict: Verdict) -> list[str]:
    """What came of it, one line each."""
    lines = [*run.notes]
    done = f"{verdict.rows} rows with {verdict.steps} plant steps"
    if verdict.difference:
        lines += [str(verdict.difference), f"different after {done}"]
        then, now = run.about["made_by"], made_by()
        lines += [f"recorded with {then}", f"this is      {now}"] if then != now else []
    elif verdict.gap:
        lines.append(f"bit-identical for {done}; then it can not go on: {verdict.gap}")
    else:
        lines.append(f"bit-identical: {done}")
    return lines

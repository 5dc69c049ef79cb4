"""Commands: what was asked for is found again by the number of its answer, with every bit."""

import math

import numpy as np

from hilnode.shared.codes import PARAMS, Answer, Command, Event
from hilnode.shared.command_record import CommandBook, CommandRow
from hilnode.shared.command_ring import CommandRing
from hilnode.shared.events import Happening


def answer(ident: int, what: Answer = Answer.DONE) -> Happening:
    return Happening(7, 1000, Event.COMMAND, what, 0.0, ident, "command")


def test_a_command_comes_back_with_every_bit():
    params = (0.1, -0.0, math.inf, math.nan, *[5e-324] * (PARAMS - 4))
    command = CommandRow(Command.FAULT, -1, 2**40 + 1, params)
    again = CommandRow.from_hex(command.hex())
    assert (again.op, again.index, again.ident) == (Command.FAULT, -1, 2**40 + 1)
    assert np.array_equal(np.array(again.params).view(np.int64), np.array(params).view(np.int64))


def test_answers_find_their_commands(name):
    ring = CommandRing(name)
    book = CommandBook([ring.ring], ["arm.torque", "arm.angle"], ["arm.mass"])
    ring.send(Command.PARAMETER, 0, [2.5])
    ring.send(Command.FORCE, 1, [0.5])
    ring.send(Command.ARM)
    book.look()
    first = ring.ring.reader(first=0).read()[0][2]
    told = [book.describe(answer(int(first) + k)) for k in (1, 0)]
    assert [t["op"] for t in told] == ["force", "parameter"]
    assert [t["what"] for t in told] == ["force arm.angle = 0.5: done", "parameter arm.mass = 2.5: done"]
    assert CommandRow.from_hex(told[1]["order"]).params[0] == 2.5
    assert book.describe(answer(int(first) + 2, Answer.WRONG_STATE))["what"] == "arm: not possible now"
    unknown = book.describe(answer(99))
    assert unknown["op"] == "unknown"
    assert "order" not in unknown
    ring.close()


def test_other_events_stay_as_they_are(name):
    ring = CommandRing(name)
    book = CommandBook([ring.ring], [], [])
    stale = Happening(3, 500, Event.STALE, 0, math.inf, 0, "input x is stale")
    assert book.describe(stale) == {"tick": 3, "time_ns": 500, "event": "stale", "index": 0, "what": "input x is stale"}
    ring.close()

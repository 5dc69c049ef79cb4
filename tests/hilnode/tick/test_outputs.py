"""Which command goes into which mailbox, and which channel feeds which input, with several devices."""

from __future__ import annotations

import numpy as np

from hilnode.shared.codes import Command

from .bench import Bench, config, stimulus, wire_in, wire_out
from .plants import pass_through

ANOTHER = """
[drivers.far]
kind = "loopback"
channels = 3
"""


def two_devices(bench, *tables: str) -> Bench:
    return bench(config(ANOTHER, *tables, channels=2), pass_through(channels=4), last_tick=10)


def test_every_command_reaches_its_own_device(bench):
    """Named in a mixed order; a mailbox has one value per driven channel, in the order of the file."""
    b = two_devices(
        bench,
        *(stimulus("constant", f"u.{k}", value=10.0 + k) for k in range(4)),
        wire_out("far.out.2", "y.0", safe=-1.0),
        wire_out("dev.out.1", "y.1", safe=-2.0),
        wire_out("far.out.0", "y.2", safe=-3.0),
        wire_out("dev.out.0", "u.3", safe=-4.0),
    )
    sent = []
    b.on_step(lambda n: sent.append([b.outboxes[d].take()[1].tolist() for d in ("dev", "far")]) if n == 5 else None)
    b.start()
    b.run()
    assert sent == [[[11.0, 13.0], [10.0, 12.0]]]
    assert b.outboxes["dev"].take()[1].tolist() == [-2.0, -4.0]
    assert b.outboxes["far"].take()[1].tolist() == [-1.0, -3.0]
    assert [s.name for s in b.schema.commands] == ["dev.out.1", "dev.out.0", "far.out.2", "far.out.0"]
    last = b.rows[-1]
    assert [last[s.name] for s in b.schema.commands] == [11.0, 13.0, 10.0, 12.0]


def test_every_input_finds_its_own_channel(bench):
    sources = {"u.0": "far.in.2", "u.1": "dev.in.1", "u.2": "far.in.0", "u.3": "dev.in.0"}
    b = two_devices(bench, *(wire_in(u, source, stale_ms=60_000) for u, source in sources.items()))
    b.letter("dev", [1.0, 2.0])
    b.letter("far", [3.0, 4.0, 5.0])
    b.start()
    b.run()
    assert [b.rows[u][-1] for u in sources] == [5.0, 2.0, 3.0, 1.0]


def test_one_output_may_drive_several_channels(bench):
    b = two_devices(
        bench,
        stimulus("constant", "u.0", value=1.0),
        wire_out("dev.out.0", "y.0", scale=2.0),
        wire_out("far.out.1", "y.0", scale=-3.0),
    )
    b.start()
    b.run()
    assert (b.rows["dev.out.0"][-1], b.rows["far.out.1"][-1]) == (2.0, -3.0)


def test_value_that_overflows_in_the_devices_unit_does_not_reach_it(bench):
    b = bench(config(wire_in(stale_ms=60_000), wire_out(scale=100.0)), pass_through(), last_tick=10)
    b.letter("dev", [1e308])
    b.on_step(lambda n: b.letter("dev", [1.0]) and 0 if n == 2 else 0)
    b.start()
    b.run()
    assert np.isfinite(b.rows["dev.out.0"]).all()


def test_node_without_any_device_runs(bench):
    b = bench('[node]\npace = "free"', pass_through(), last_tick=10)
    b.start()
    b.run()
    assert (b.rows["step"] == np.arange(1, 11)).all()


def test_commands_that_overtake_the_ring_are_counted_as_lost(bench):
    """Three thousand commands into a ring of 1024 before the loop looks: none is taken half, none is taken twice."""
    b = bench(config(), pass_through(), last_tick=250)

    def flood(n: int) -> None:
        for k in range(3000 if n == 0 else 0):
            b.commands.send(Command.FORCE, 0, [float(k)])

    b.on_step(flood)
    b.start()
    b.run()
    taken = [h.value for h in b.answers.values() if h.ident > 2**32]
    lost = int(b.tick.command_rings[0, 3])
    assert lost > 1900
    assert taken == [float(k) for k in range(lost, 3000)]
    assert b.rows["u.0"][-1] == 2999.0

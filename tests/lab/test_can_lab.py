"""The driver `can` on SocketCAN, the kernel's own: frames by python-can and cantools at the other end."""

from __future__ import annotations

from typing import Any

import pytest
from lab_bench import DBC, bench, ecu
from labvm.vcan import VirtualBus
from support import wait_for

from hilnode.cli.devices import list_devices
from hilnode.shared.health import H, Health

pytestmark = [
    pytest.mark.lab,
    # python-can drops the socket of a bus that could not be opened without closing it
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


def options(bus: VirtualBus, **more: Any) -> dict[str, Any]:
    return {
        "dbc": str(DBC),
        "channel": bus.name,
        "receive": {"Pedal": {"timeout_ms": 1000.0}},
        "send": ["Lever"],
        "channels": {"force": "Pedal.Force", "angle": {"signal": "Lever.Angle", "safe": -2.0}},
        **more,
    }


def test_signals_come_and_go_by_their_database(bus: VirtualBus) -> None:
    with ecu(bus.name) as peer, bench("can", **options(bus)) as b:
        peer.force = 123.45
        b.await_value("force", 123.45)
        b.await_state(Health.UP)
        peer.await_signal("Lever", "Angle", -2.0)
        b.command(0.5)
        peer.await_signal("Lever", "Angle", 0.5)
        b.live = False
        peer.await_signal("Lever", "Angle", -2.0)


def test_a_silent_bus_degrades_and_recovers(bus: VirtualBus) -> None:
    with ecu(bus.name) as peer, bench("can", **options(bus)) as b:
        peer.force = 10.0
        b.await_value("force", 10.0)
        peer.talks = False
        b.await_state(Health.DEGRADED)
        assert "Pedal" in b.runner.trouble
        stamp = int(b.inbox.take()[2][0])
        sent = peer.frames
        wait_for(lambda: peer.frames > sent + 3, "frames that still go out")
        assert int(b.inbox.take()[2][0]) == stamp  # the value ages
        peer.talks = True
        b.await_state(Health.UP)


def test_an_interface_that_goes_down_and_comes_back(bus: VirtualBus) -> None:
    with ecu(bus.name) as peer, bench("can", **options(bus)) as b:
        peer.force = 10.0
        b.await_value("force", 10.0)
        b.command(0.25)
        bus.down()
        b.await_state(Health.DOWN)
        assert bus.name in b.runner.trouble
        bus.up()
        peer.force = 20.0
        b.await_value("force", 20.0)
        b.await_state(Health.UP)
        peer.got.clear()
        peer.await_signal("Lever", "Angle", 0.25)


def test_an_adapter_that_is_pulled_out_and_put_back(bus: VirtualBus) -> None:
    with bench("can", **options(bus)) as b:
        with ecu(bus.name) as peer:
            peer.force = 10.0
            b.await_value("force", 10.0)
        bus.remove()
        b.await_state(Health.DOWN)
        bus.add()
        with ecu(bus.name) as peer:
            peer.force = 30.0
            b.await_value("force", 30.0)
            peer.await_signal("Lever", "Angle", -2.0)
        assert b.health[H.RECONNECTS] >= 1


def test_fd_frames(bus: VirtualBus) -> None:
    more = {"fd": True, "receive": ["Wide"], "send": ["WideOut"], "channels": {"precise": "Wide.Precise"}}
    with ecu(bus.name, fd=True) as peer, bench("can", **options(bus, **more)) as b:
        # Again and again: what is sent before the driver has the bus open is lost.
        wait_for(lambda: peer.send("Wide", Precise=1 / 3) or b.value("precise") == 1 / 3, "the value")
        b.command(2 / 3)
        peer.await_signal("WideOut", "Position", 2 / 3, within=1e-15)


def test_it_is_listed_among_the_devices(bus: VirtualBus) -> None:
    assert bus.name in [d.id for d in list_devices() if d.kind == "can"]

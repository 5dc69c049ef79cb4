"""Whole nodes with the kernel's own HID and CAN devices: plugged in, read, written, pulled out, put back.

Slow ticks, for the lab PC is ten to twenty times slower than what it runs on; what happens in them is what counts.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from joysticks import DUAL_ACTION, DUAL_ACTION_ID, dual_action
from lab_bench import DBC, ecu
from labvm.uhid import UhidDevice
from labvm.vcan import VirtualBus
from support import make_config, wait_for

from hilnode.node.node import Node
from hilnode.shared.health import H, Health
from hilnode.shared.row import State

pytestmark = [
    pytest.mark.lab,
    # python-can drops the socket of a bus that could not be opened without closing it
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]

TORQUE = "pendulum.shoulder.torque"
COMMON = f"""
node.rate_hz = 50
safety.watchdog = false
safety.bumpless_ms = 0
safety.stop_deadline_ms = 20000
log.timing = false
[signals.inputs."{TORQUE}"]
from = "device.{{channel}}"
unit = "N*m"
stale_ms = 1000.0
stale = "default"
default = 0.25
"""
HID = f"""
[drivers.device]
kind = "hid"
vendor = {DUAL_ACTION_ID[0]}
product = {DUAL_ACTION_ID[1]}
channels = {{ boom = "x" }}
templates = [[0, {{ name = "motor", low = 0.0, high = 255.0, scale = 1.0, safe = 7.0 }}, 0, 0, 0, 0, 0, 0]]
[signals.outputs."device.motor"]
from = "{TORQUE}"
unit = "N*m"
scale = 100.0
offset = 100.0
"""
CAN = f"""
[drivers.device]
kind = "can"
dbc = "{DBC}"
channel = "{{bus}}"
receive = {{{{ Pedal = {{{{ timeout_ms = 1000.0 }}}} }}}}
send = ["Lever"]
channels = {{{{ force = "Pedal.Force", angle = {{{{ signal = "Lever.Angle", safe = -2.0 }}}} }}}}
[signals.outputs."device.angle"]
from = "{TORQUE}"
unit = "N*m"
"""


class Running:
    """A node that runs, and what it said."""

    def __init__(self, node: Node, said: list[str]) -> None:
        self.node, self.said = node, said

    def await_input(self, value: float, within: float = 1e-9) -> None:
        wait_for(lambda: abs(self.node.last_row().get(TORQUE, 1e9) - value) <= within, f"an input of {value}")

    def await_health(self, health: Health) -> None:
        wait_for(lambda: self.node.driver_states()["device"][0] == health, f"a driver that is {health.name.lower()}")

    def await_said(self, what: str, times: int = 1) -> None:
        wait_for(lambda: sum(what in line for line in self.said) >= times, f"{what!r} said {times} times")


@contextlib.contextmanager
def running(folder: Path, name: str, text: str) -> Iterator[Running]:
    said: list[str] = []
    with Node(make_config(folder, name, text), say=said.append) as node:
        node.start()
        node.arm()
        node.run()
        yield Running(node, said)
        assert node.state == State.RUNNING  # through all of it


def report(motor: int) -> bytes:
    """The output report for a value of the channel `motor`: id 0, then 7 bytes."""
    return bytes((0, motor, 0, 0, 0, 0, 0, 0))


def test_a_joystick_is_pulled_out_and_put_back(tmp_path: Path, name: str) -> None:
    stick = UhidDevice("Dual Action", *DUAL_ACTION_ID, DUAL_ACTION)
    with running(tmp_path, name, COMMON.format(channel="boom") + HID) as r:
        with stick:
            wait_for(lambda: stick.opened, "the node to find the stick")
            stick.send(dual_action(x=255))
            r.await_input(1.0)
            r.await_health(Health.UP)
            stick.await_output(lambda got: got == report(200))  # live: 100 * 1 N*m + 100
        r.await_health(Health.DOWN)
        r.await_said(f"input {TORQUE} is stale")
        r.await_input(0.25)
        with UhidDevice("Dual Action", *DUAL_ACTION_ID, DUAL_ACTION) as again:
            wait_for(lambda: again.opened, "the node to find it again")
            again.send(dual_action(x=0))
            r.await_input(-1.0)
            r.await_said(f"input {TORQUE} is fresh again", times=2)  # the first time was the first report
            again.await_output(lambda got: got == report(0))
            r.await_health(Health.UP)
            assert r.node.runners["device"].health[H.RECONNECTS] == 1
            r.node.disarm()
            again.await_output(lambda got: got == report(7))
            r.node.arm()
            r.node.run()


def test_a_can_bus_falls_silent_is_pulled_out_and_put_back(tmp_path: Path, name: str, bus: VirtualBus) -> None:
    with running(tmp_path, name, COMMON.format(channel="force") + CAN.format(bus=bus.name)) as r:
        with ecu(bus.name) as peer:
            peer.force = 1.5
            r.await_input(1.5)
            peer.await_signal("Lever", "Angle", 1.5)
            peer.talks = False
            r.await_health(Health.DEGRADED)
            assert "no Pedal for 1000 ms" in r.node.driver_states()["device"][1]
            r.await_said(f"input {TORQUE} is stale")
            r.await_input(0.25)
            peer.await_signal("Lever", "Angle", 0.25)
            peer.talks = True
            r.await_input(1.5)
            r.await_health(Health.UP)
        bus.remove()
        r.await_health(Health.DOWN)
        r.await_said(f"input {TORQUE} is stale", times=2)
        r.await_input(0.25)
        bus.add()
        with ecu(bus.name) as peer:
            peer.force = 2.5
            r.await_input(2.5)
            peer.await_signal("Lever", "Angle", 2.5)
            assert r.node.runners["device"].health[H.RECONNECTS] >= 1

"""The driver `hid` with devices of the kernel: by a program (uhid) and behind a USB port (dummy_hcd)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from joysticks import DUAL_ACTION, DUAL_ACTION_ID, dual_action
from lab_bench import bench
from labvm.uhid import UhidDevice
from labvm.usb_gadget import UsbHid
from support import wait_for

from hilnode.cli.devices import list_devices
from hilnode.shared.health import H, Health

pytestmark = pytest.mark.lab

OPTIONS: dict[str, Any] = {
    "vendor": DUAL_ACTION_ID[0],
    "product": DUAL_ACTION_ID[1],
    "channels": {"boom": "x", "slew": "y", "horn": "button 1", "lights": "button 12", "hat": "hat_x"},
    "templates": [[0, {"name": "motor", "low": 0.0, "high": 255.0, "scale": 1.0, "safe": 7.0}, 0, 0, 0, 0, 0, 0]],
}


def output(motor: int) -> bytes:
    """The output report for a value of the channel `motor`, as the device gets it: id 0, then 7 bytes."""
    return bytes((0, motor, 0, 0, 0, 0, 0, 0))


@pytest.fixture
def stick() -> Iterator[UhidDevice]:
    with UhidDevice("Dual Action", *DUAL_ACTION_ID, DUAL_ACTION, serial="lab-1") as made:
        yield made


def await_opened(stick: UhidDevice) -> None:
    """What a device sends before anybody listens is lost."""
    wait_for(lambda: stick.opened, "the driver to find the stick")


def test_axes_buttons_and_hat(stick: UhidDevice) -> None:
    with bench("hid", **OPTIONS) as b:
        await_opened(stick)
        stick.send(dual_action(x=0, y=255, hat=2, buttons=0x801))
        b.await_state(Health.UP)
        for name, value in {"boom": -1.0, "slew": 1.0, "horn": 1.0, "lights": 1.0, "hat": 1.0}.items():
            b.await_value(name, value)
        stick.send(dual_action(x=255, hat=6))
        for name, value in {"boom": 1.0, "horn": 0.0, "lights": 0.0, "hat": -1.0}.items():
            b.await_value(name, value)
        b.await_value("slew", 0.0, within=0.005)


def test_a_stick_at_rest_stays_fresh(stick: UhidDevice) -> None:
    with bench("hid", **OPTIONS) as b:
        await_opened(stick)
        stick.send(dual_action(x=255))
        b.await_value("boom", 1.0)
        first = b.inbox.take()[2].copy()
        wait_for(lambda: (b.inbox.take()[2] > first + 100_000_000).all(), "stamps that are renewed")
        assert b.state == Health.UP


def test_output_reports_are_live_then_safe(stick: UhidDevice) -> None:
    with bench("hid", **OPTIONS) as b:
        stick.await_output(lambda report: report == output(7))
        b.command(200.0)
        stick.await_output(lambda report: report == output(200))
        b.live = False
        stick.await_output(lambda report: report == output(7))
        b.command(55.0)
        stick.await_output(lambda report: report == output(55))
    stick.await_output(lambda report: report == output(7))  # the driver has ended; the last report is under way


def test_unplugged_and_plugged_in_again() -> None:
    with UhidDevice("Dual Action", *DUAL_ACTION_ID, DUAL_ACTION) as stick, bench("hid", **OPTIONS) as b:
        await_opened(stick)
        stick.send(dual_action(x=255))
        b.await_value("boom", 1.0)
        stick.close()
        b.await_state(Health.DOWN)
        assert "Dual Action" in b.runner.trouble or "no HID device" in b.runner.trouble
        frames = int(b.health[H.FRAMES])
        with UhidDevice("Dual Action", *DUAL_ACTION_ID, DUAL_ACTION) as again:
            await_opened(again)
            again.send(dual_action(x=0))
            b.await_value("boom", -1.0)
            b.await_state(Health.UP)
            b.command(99.0)
            again.await_output(lambda report: report == output(99))
        assert b.health[H.FRAMES] > frames
        assert b.health[H.RECONNECTS] >= 1


def test_the_stick_with_the_right_serial_number(stick: UhidDevice) -> None:
    with (
        UhidDevice("Dual Action", *DUAL_ACTION_ID, DUAL_ACTION, serial="lab-2") as other,
        bench("hid", **OPTIONS | {"serial": "lab-2"}) as b,
    ):
        await_opened(other)
        stick.send(dual_action(x=255))
        other.send(dual_action(x=0))
        b.await_value("boom", -1.0)
        assert stick.opened == 0


def test_two_of_a_kind_are_not_taken_by_chance(stick: UhidDevice) -> None:
    with (
        UhidDevice("Dual Action", *DUAL_ACTION_ID, DUAL_ACTION, serial="lab-2"),
        bench("hid", **OPTIONS) as b,
    ):
        wait_for(lambda: "lab-1" in b.runner.trouble and "lab-2" in b.runner.trouble, "both serial numbers named")
        assert b.state == Health.DOWN


def test_a_usb_stick_is_pulled_out_and_put_back() -> None:
    with (
        UsbHid("Dual Action", *DUAL_ACTION_ID, DUAL_ACTION, longest=8, serial="lab-3") as stick,
        bench("hid", **OPTIONS | {"serial": "lab-3"}) as b,
    ):
        for x, value in ((255, 1.0), (0, -1.0)):
            report = dual_action(x=x)  # again and again: what is sent before the driver has it open, Linux throws away
            wait_for(lambda r=report, v=value: stick.send(r) or b.value("boom") == v, "the value")  # type: ignore[misc]
            b.command(float(x))
            wait_for(lambda x=x: stick.receive()[:1] == bytes([x]), "the output report")  # type: ignore[misc]
            stick.unplug()
            b.await_state(Health.DOWN)
            stick.plug()


def test_it_is_listed_among_the_devices(stick: UhidDevice) -> None:
    (found,) = [d for d in list_devices() if d.kind == "hid"]
    assert (found.id, found.name, found.stable) == (stick.node, "Dual Action", "lab-1")

"""The lab PC itself, with nothing of ours between a device and the libraries that read it."""

from __future__ import annotations

import os
from pathlib import Path

import can
import hidraw
import pytest
from joysticks import DUAL_ACTION, DUAL_ACTION_ID, dual_action
from labvm.uhid import UhidDevice
from labvm.usb_gadget import UsbHid
from labvm.vcan import VirtualBus
from support import wait_for

pytestmark = pytest.mark.lab
WAIT_MS = 30_000


def test_a_uhid_joystick_is_read_by_hidapi() -> None:
    with UhidDevice("Dual Action", *DUAL_ACTION_ID, DUAL_ACTION, serial="lab-7") as stick:
        (found,) = hidraw.enumerate(*DUAL_ACTION_ID)
        assert (found["path"].decode(), found["serial_number"]) == (stick.node, "lab-7")
        reader = hidraw.device()
        reader.open_path(found["path"])
        report = dual_action(x=3, y=250, hat=2, buttons=0x801)
        stick.send(report)
        assert bytes(reader.read(64, WAIT_MS)) == report
        wait_for(lambda: stick.opened == 1, "the word that somebody has it open")
        reader.close()


def test_a_uhid_joystick_gets_output_reports_and_goes() -> None:
    with UhidDevice("Dual Action", *DUAL_ACTION_ID, DUAL_ACTION) as stick:
        reader = hidraw.device()
        reader.open_path(stick.node.encode())
        sent = bytes((0, 1, 2, 3, 4, 5, 6, 7))  # report id 0, then 7 bytes
        assert reader.write(sent) == len(sent)
        assert stick.await_output(lambda report: True) == sent
        stick.close()
        with pytest.raises(OSError, match="read error"):
            reader.read(64, WAIT_MS)
        reader.close()
    assert not hidraw.enumerate(*DUAL_ACTION_ID)


def test_a_usb_joystick_is_read_unplugged_and_plugged_in_again() -> None:
    with UsbHid("Dual Action", *DUAL_ACTION_ID, DUAL_ACTION, longest=8, serial="lab-8") as stick:
        for _ in range(2):
            (found,) = hidraw.enumerate(*DUAL_ACTION_ID)
            assert (found["path"].decode(), found["serial_number"]) == (stick.node, "lab-8")
            assert found["product_string"] == "Dual Action"
            reader = hidraw.device()
            reader.open_path(found["path"])
            stick.send(dual_action(rz=77))
            assert bytes(reader.read(64, WAIT_MS)) == dual_action(rz=77)
            reader.write(bytes((0, 9, 8, 7, 6, 5, 4, 3)))
            assert stick.receive()[:7] == bytes((9, 8, 7, 6, 5, 4, 3))
            stick.unplug()
            with pytest.raises(OSError, match="read error"):
                reader.read(64, WAIT_MS)
            reader.close()
            assert not hidraw.enumerate(*DUAL_ACTION_ID)
            stick.plug()


def test_a_can_bus_carries_classic_and_fd_frames(bus: VirtualBus) -> None:
    classic = can.Message(arbitration_id=0x123, data=[1, 2, 3], is_extended_id=False)
    fd = can.Message(arbitration_id=0x1ABCDEF0, data=bytes(range(64)), is_fd=True, bitrate_switch=True)
    with (
        can.Bus(interface="socketcan", channel=bus.name, fd=True) as sender,
        can.Bus(interface="socketcan", channel=bus.name, fd=True) as receiver,
    ):
        for message in (classic, fd):
            sender.send(message)
            got = receiver.recv(WAIT_MS / 1000)
            assert got is not None
            assert got.equals(message, timestamp_delta=None, check_channel=False, check_direction=False)


def test_what_is_written_stays_in_the_lab() -> None:
    """The files of the machine around it can be changed in here only: a test can not hurt them."""
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    assert next(m[2] for m in mounts if m[1] == "/") == "overlay"
    assert os.uname().nodename == "lab"

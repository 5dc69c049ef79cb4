"""Devices in made-up /sys and /dev trees, built as the kernel builds them: folders, links and small files."""

from __future__ import annotations

import io
import json
import os
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from hilnode.cli import devices
from hilnode.cli.devices import Device, Problem, list_devices, render, to_json

BY_ID = "usb-FTDI_FT232R_USB_UART_A50285BI-if00-port0"
JOYSTICK = (
    "DRIVER=hid-generic\nHID_ID=0003:0000046D:0000C215\nHID_NAME=Logitech Extreme 3D\n"
    "HID_PHYS=usb/input0\nHID_UNIQ={}\n"
)


def write(path: Path, text: str | bytes = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def link(path: Path, target: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)


def usb_serial(root: Path, tty: str, port: str, *, by_id: str = "", **says: str | bytes) -> None:
    """A USB adapter: /sys/class/tty/X links to .../usb1/PORT/PORT:1.0/X/tty/X, whose `device` links two up."""
    usb = root / "sys/devices/pci0000:00/usb1" / port
    for key, text in {"idVendor": "0403", "idProduct": "6001", **says}.items():
        write(usb / key, text)
    entry = usb / f"{port}:1.0" / tty / "tty" / tty
    write(entry / "dev", "188:0\n")
    link(entry / "device", f"../../../{tty}")
    link(root / "sys/class/tty" / tty, str(entry))
    write(root / "dev" / tty)
    if by_id:
        link(root / "dev/serial/by-id" / by_id, f"../../{tty}")


def board_serial(root: Path, tty: str, kind: str) -> None:
    port = root / "sys/devices/pnp0/00:00"
    write(port / tty / "tty" / tty / "type", kind)
    link(port / tty / "tty" / tty / "device", "../../../" + tty)
    link(root / "sys/class/tty" / tty, str(port / tty / "tty" / tty))
    write(root / "dev" / tty)


def hidraw(root: Path, name: str, uevent: str | bytes) -> None:
    write(root / "sys/class/hidraw" / name / "device/uevent", uevent)
    write(root / "dev" / name)


def can(root: Path, name: str, *, flags: str, kind: str = "280", real: bool = True) -> None:
    write(root / "sys/class/net" / name / "type", kind + "\n")
    write(root / "sys/class/net" / name / "flags", flags + "\n")
    if real:
        (root / "sys/class/net" / name / "device").mkdir()


@pytest.fixture(autouse=True)
def libraries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Empty pyserial, hidapi and python-can on the path, no nidaqmx, whatever this machine has."""
    folder = tmp_path / "libraries"
    for name in ("serial", "hid", "can"):
        write(folder / f"{name}.py")
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(str(folder))
    real = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "nidaqmx"}
    for name in real:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "nidaqmx", None)
    yield folder
    for name in [m for m in sys.modules if m.partition(".")[0] == "nidaqmx"]:
        del sys.modules[name]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "machine").mkdir()
    return tmp_path / "machine"


def only(root: Path) -> Device:
    (device,) = list_devices(root)
    return device


def stanza(device: Device) -> dict[str, dict[str, object]]:
    return tomllib.loads(device.config)["drivers"]


def fixes(device: Device) -> str:
    return "\n".join(p.fix for p in device.problems)


SERIAL = {"kind": "serial", "baud": 115200, "receive": {"format": "csv", "fields": ["x"]}}
"""What every stanza of a serial port says beside where it is."""


def test_nothing_at_all(root: Path) -> None:
    assert list_devices(root) == []


def test_usb_serial_by_its_stable_name(root: Path) -> None:
    usb_serial(
        root, "ttyUSB0", "1-1", by_id=BY_ID, manufacturer="FTDI\n", product="FT232R USB UART\n", serial="A50285BI\n"
    )
    found = only(root)
    assert (found.kind, found.id, found.name) == ("serial", "/dev/ttyUSB0", "FTDI FT232R USB UART")
    assert found.stable == f"/dev/serial/by-id/{BY_ID}"
    assert (found.library, found.available, found.problems) == ("serial", True, ())
    assert stanza(found) == {"ftdi_ft232r_usb_uart": SERIAL | {"port": f"/dev/serial/by-id/{BY_ID}"}}


def test_usb_serial_without_links_is_found_by_its_serial_number(root: Path) -> None:
    usb_serial(root, "ttyACM0", "1-2", product="Arduino Uno", serial="75833")
    found = only(root)
    assert found.stable == "75833"
    assert stanza(found) == {"arduino_uno": SERIAL | {"usb": "0403:6001:75833"}}


def test_usb_serial_with_neither_has_its_port(root: Path) -> None:
    usb_serial(root, "ttyACM0", "1-2", product="Clone")
    assert stanza(only(root)) == {"clone": SERIAL | {"port": "/dev/ttyACM0"}}


def test_two_alike_get_two_names_in_counting_order(root: Path) -> None:
    for i, port in ((10, "1-3"), (2, "1-4"), (0, "1-5")):
        usb_serial(root, f"ttyUSB{i}", port, product="UART")
    found = list_devices(root)
    assert [d.id for d in found] == ["/dev/ttyUSB0", "/dev/ttyUSB2", "/dev/ttyUSB10"]
    assert [next(iter(stanza(d))) for d in found] == ["uart", "uart_2", "uart_3"]


def test_ports_that_were_never_connected_and_terminals_are_left_out(root: Path) -> None:
    board_serial(root, "ttyS0", "4\n")
    board_serial(root, "ttyS1", "0\n")
    write(root / "sys/class/tty/tty1/dev", "4:1\n")  # a virtual terminal has no device
    assert only(root).id == "/dev/ttyS0"


def test_console_is_a_problem(root: Path) -> None:
    board_serial(root, "ttyS0", "4\n")
    write(root / "sys/class/tty/console/active", "tty0 ttyS0\n")
    (problem,) = only(root).problems
    assert "console" in problem.what
    assert "console=ttyS0" in problem.fix


def test_missing_library_is_named_with_its_remedy(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(devices.LIBRARY, "serial", "no_such_library")
    usb_serial(root, "ttyUSB0", "1-1")
    found = only(root)
    assert not found.available
    assert found.problems == (Problem("the library no_such_library is not installed", 'pip install "hilnode[serial]"'),)


@pytest.mark.parametrize("mode", [0o600, 0o660])
def test_closed_serial_port(mode: int, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usb_serial(root, "ttyUSB0", "1-1")
    monkeypatch.setattr(devices.os, "access", lambda *_: False)
    if mode & 0o060 and os.getuid() != 0:
        pytest.skip("only root can make a file of the group root")
    (root / "dev/ttyUSB0").chmod(mode)  # no group may write, or only root's: the usual one is named
    (problem,) = only(root).problems
    assert "no permission to open /dev/ttyUSB0" in problem.what
    assert problem.fix.startswith("sudo usermod -aG dialout $USER")


def test_closed_serial_port_names_the_group_it_belongs_to(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usb_serial(root, "ttyUSB0", "1-1")
    monkeypatch.setattr(devices.os, "access", lambda *_: False)
    monkeypatch.setattr(devices.grp, "getgrgid", lambda gid: type("Group", (), {"gr_name": f"group{gid}"}))
    if os.getuid() == 0:
        os.chown(root / "dev/ttyUSB0", 0, 20)
    (root / "dev/ttyUSB0").chmod(0o660)
    gid = (root / "dev/ttyUSB0").stat().st_gid
    assert f"usermod -aG group{gid} $USER" in fixes(only(root))


def test_missing_node(root: Path) -> None:
    usb_serial(root, "ttyUSB0", "1-1")
    (root / "dev/ttyUSB0").unlink()
    (problem,) = only(root).problems
    assert problem.what == "/dev/ttyUSB0 does not exist"
    assert "--device /dev/ttyUSB0" in problem.fix


@pytest.mark.parametrize(
    ("program", "fix"),
    [("minicom", "kill 4711   # or close it"), ("ModemManager", "sudo systemctl disable --now ModemManager")],
)
def test_busy_port_names_who_holds_it(program: str, fix: str, root: Path) -> None:
    usb_serial(root, "ttyUSB0", "1-1")
    link(root / "proc/4711/fd/5", "/dev/ttyUSB0")
    write(root / "proc/4711/comm", f"{program}\n")
    assert only(root).problems == (Problem(f"in use by {program} (pid 4711)", fix),)


def test_hid_by_maker_product_and_serial(root: Path) -> None:
    hidraw(root, "hidraw0", JOYSTICK.format("SN 7"))
    found = only(root)
    assert (found.kind, found.id, found.name, found.stable) == ("hid", "/dev/hidraw0", "Logitech Extreme 3D", "SN 7")
    address = {"kind": "hid", "vendor": 0x046D, "product": 0xC215, "serial": "SN 7"}
    assert stanza(found) == {"logitech_extreme_3d": address}


def test_hid_without_serial_or_id(root: Path) -> None:
    hidraw(root, "hidraw0", JOYSTICK.format(""))
    hidraw(root, "hidraw1", "HID_ID=nonsense\n")
    named, nameless = list_devices(root)
    assert stanza(named) == {"logitech_extreme_3d": {"kind": "hid", "vendor": 0x046D, "product": 0xC215}}
    assert stanza(nameless) == {"hid_device": {"kind": "hid", "path": "/dev/hidraw1"}}


def test_closed_hid_gets_a_udev_rule(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hidraw(root, "hidraw0", JOYSTICK.format(""))
    monkeypatch.setattr(devices.os, "access", lambda *_: False)
    lines = fixes(only(root)).splitlines()
    assert """'KERNEL=="hidraw*", KERNELS=="0003:046D:C215.*", GROUP="input", MODE="660"'""" in lines
    assert lines[0].endswith("<<< \\")  # goes on in the next line, however that is indented
    assert all(len(line) <= 76 for line in lines)


def test_can_up_down_virtual_and_ethernet(root: Path) -> None:
    can(root, "can0", flags="0x40080")
    can(root, "can1", flags="0x400c1")
    can(root, "vcan0", flags="0x80", real=False)
    can(root, "eth0", flags="0x1003", kind="1")
    down, up, virtual = list_devices(root)
    assert (down.kind, down.id, down.name, down.available) == ("can", "can0", "CAN interface", True)
    assert "sudo ip link set can0 up type can bitrate 500000" in fixes(down)
    assert up.problems == ()
    assert fixes(virtual) == "sudo ip link set vcan0 up"
    options = {"kind": "can", "channel": "can1", "dbc": "ecu.dbc", "receive": ["EngineData"]}
    assert stanza(up) == {"can_interface_2": options}


def nidaqmx(folder: Path, source: str) -> None:
    sys.modules.pop("nidaqmx", None)
    write(folder / "nidaqmx/__init__.py")
    write(folder / "nidaqmx/system.py", source)


def test_daq_cards(root: Path, libraries: Path) -> None:
    nidaqmx(
        libraries,
        "class Chans: channel_names = ['Dev1/ai0', 'Dev1/ai1']\n"
        "class Card: name, product_type, serial_num, ai_physical_chans = 'Dev1', 'PCIe-6363', 0x1A2B3C, Chans\n"
        "class System:\n    devices = [Card]\n    local = classmethod(lambda cls: cls)\n",
    )
    found = only(root)
    assert (found.kind, found.id, found.name, found.stable) == ("daq", "Dev1", "PCIe-6363", "001A2B3C")
    inputs = [{"name": "x", "channel": "ai0"}]
    assert stanza(found) == {"pcie_6363": {"kind": "daq", "device": "Dev1", "inputs": inputs}}


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("class System:\n    def local(): raise OSError('NI-DAQmx\\n is  absent')\n", "OSError: NI-DAQmx is absent"),
        ("import a_dependency_it_lacks\n", "a_dependency_it_lacks"),
        ("1 / 0\n", "ZeroDivisionError"),
    ],
)
def test_daq_without_its_driver_is_one_remark(source: str, told: str, root: Path, libraries: Path) -> None:
    nidaqmx(libraries, source)
    remark = only(root)
    assert (remark.id, remark.config, remark.available) == ("", "", False)
    (problem,) = remark.problems
    assert told in problem.what
    assert "\n" not in problem.what


def shown(found: list[Device], width: int = 80) -> str:
    out = io.StringIO()
    Console(file=out, width=width).print(render(found))
    return out.getvalue()


def test_nothing_found_says_how_to_go_on(root: Path, libraries: Path) -> None:
    assert "twin" in shown([])
    nidaqmx(libraries, "1 / 0\n")
    text = shown(list_devices(root))
    assert "ZeroDivisionError" in text
    assert "twin" in text


def test_stanza_can_be_copied_from_the_screen(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usb_serial(root, "ttyUSB0", "1-1", by_id=BY_ID, product="FT232R [bold]")
    hidraw(root, "hidraw0", JOYSTICK.format(""))
    monkeypatch.setattr(devices.os, "access", lambda *_: False)
    found = list_devices(root)
    text = shown(found)
    lines = {line.lstrip() for line in text.splitlines()}  # with nothing behind them
    for wanted in (*(d.config for d in found), *(fixes(d) for d in found)):
        assert set(wanted.splitlines()) <= lines
    assert "FT232R [bold]" in text
    assert "twin" not in text


def test_json(root: Path) -> None:
    can(root, "can0", flags="0x0")
    (plain,) = json.loads(json.dumps(to_json(list_devices(root))))
    assert plain["kind"] == "can"
    assert plain["problems"][0]["what"] == "the interface is down"
    assert set(plain) == {"kind", "id", "name", "stable", "library", "available", "problems", "config"}


def test_escape_codes_in_a_descriptor_do_not_reach_the_terminal(root: Path) -> None:
    usb_serial(root, "ttyUSB0", "1-1", product=b"evil\x1b]0;title\x07\x7f")
    assert only(root).name == "evil?]0;title??"


@settings(max_examples=40, deadline=None)
@given(st.lists(st.binary(max_size=60), min_size=9, max_size=9))
def test_noise_in_every_file_raises_nothing_and_stays_toml(noise: list[bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        usb_serial(root, "ttyUSB0", "1-1", product=noise[0], manufacturer=noise[1], serial=noise[2])
        hidraw(root, "hidraw0", noise[3])
        hidraw(root, "hidraw1", b"HID_NAME=" + noise[4] + b"\nHID_ID=3:1:2\nHID_UNIQ=" + noise[5])
        write(root / "sys/class/net/can0/type", noise[6])
        can(root, "can1", flags="")
        write(root / "sys/class/net/can1/flags", noise[7])
        write(root / "sys/class/tty/console/active", noise[8])
        found = list_devices(root)
        assert {"/dev/ttyUSB0", "/dev/hidraw0", "/dev/hidraw1", "can1"} <= {d.id for d in found}
        merged = tomllib.loads("\n".join(d.config for d in found))["drivers"]
        assert len(merged) == len(found)  # no two share a name
        shown(found)


def test_this_machine_can_be_listed() -> None:
    for device in list_devices():
        (keys,) = stanza(device).values()
        assert keys["kind"] == device.kind

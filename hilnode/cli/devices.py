"""Devices attached to this PC, what prevents their use, and the config lines that use them.

Everything is read from /sys, /dev and /proc below a root folder, so it needs no device library and no device. A library
is only asked for where the kernel knows nothing: National Instruments cards show up through nidaqmx alone.
"""

from __future__ import annotations

import grp
import importlib
import importlib.util
import json
import os
import re
import shlex
import stat
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from rich.console import Group, RenderableType
from rich.text import Text

Kind = Literal["serial", "hid", "can", "daq"]

ROOT = Path("/")
ARPHRD_CAN = "280"
IFF_UP = 1

LIBRARY: dict[Kind, str] = {"serial": "serial", "hid": "hid", "can": "can", "daq": "nidaqmx"}
"""The module each kind of driver imports."""

WITHOUT = (
    "No serial port, HID device, CAN interface or DAQ card found.\n"
    "You can go on without: a twin plays the device behind a driver, and a configuration made of twins runs whole on "
    "this PC. Plug a device in later, run this again and paste its lines."
)

SERVICES = ("ModemManager", "brltty")
"""They open every new serial port to see whether it is theirs; killed, they come back."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What stands in the way, and what to type against it."""

    what: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Device:
    """One device. `id` is what the kernel calls it today.

    `stable` outlives replugging: a link below /dev/serial/by-id, else a serial number, else nothing. A device without
    `id` is a remark about a library that could not be asked.
    """

    kind: Kind
    id: str
    name: str
    stable: str = ""
    library: str = ""
    available: bool = True
    problems: tuple[Problem, ...] = ()
    config: str = ""


def list_devices(root: Path = ROOT) -> list[Device]:
    """Every device a driver could be opened on, each with its own name in the configuration."""
    holders = _holders(root)
    found = [*_serial(root, holders), *_hid(root, holders), *_can(root), *_daq()]
    return _with_headers(found)


def _read(path: Path) -> str:
    """The text of a file, or nothing. Descriptors are the device's own words: unprintable ones become `?`."""
    try:
        text = path.read_text(errors="replace").strip()
    except OSError:
        return ""
    return "".join(c if c.isprintable() or c == "\n" else "?" for c in text)


def _line(path: Path) -> str:
    return " ".join(_read(path).split())


def _names(folder: Path) -> list[str]:
    """The entries of a folder in counting order: ttyUSB2 before ttyUSB10."""
    try:
        names = [n for n in os.listdir(folder) if n.isprintable()]
    except OSError:
        return []
    return sorted(names, key=lambda n: [(len(d), d) if d.isdigit() else (0, d) for d in re.split(r"(\d+)", n)])


def _link(path: Path) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


Holders = dict[str, tuple[str, str]]


def _holders(root: Path) -> Holders:
    """Device path -> (pid, program) that has it open. Other users' processes show themselves to root only."""
    held: Holders = {}
    for pid in (n for n in _names(root / "proc") if n.isdigit() and n != str(os.getpid())):
        for fd in _names(root / "proc" / pid / "fd"):
            target = _link(root / "proc" / pid / "fd" / fd)
            if target.startswith(("/dev/tty", "/dev/hidraw")):
                held.setdefault(target, (pid, _line(root / "proc" / pid / "comm") or "a program"))
    return held


def _usb(entry: Path, root: Path) -> dict[str, str]:
    """What the USB device behind a /sys entry says of itself; empty for what is not on USB."""
    try:
        place, top = (entry / "device").resolve(), (root / "sys").resolve()
    except (OSError, RuntimeError):
        return {}
    for folder in (place, *place.parents):
        if not folder.is_relative_to(top):
            break
        if (folder / "idVendor").exists():
            keys = ("idVendor", "idProduct", "manufacturer", "product", "serial")
            return {k: text for k in keys if (text := _line(folder / k))}
    return {}


def _library_problem(kind: Kind) -> tuple[Problem, ...]:
    name = LIBRARY[kind]
    if not name or _importable(name):
        return ()
    return (Problem(f"the library {name} is not installed", f'pip install "hilnode[{kind}]"'),)


def _importable(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def _node_problems(root: Path, path: str, holders: Holders, fix: str) -> list[Problem]:
    """Missing, closed to this user, or held by somebody else."""
    node = root / path.lstrip("/")
    if not node.exists():
        return [
            Problem(f"{path} does not exist", f"sudo udevadm trigger\n# in a container: docker run --device {path}")
        ]
    problems = []
    if not os.access(node, os.R_OK | os.W_OK):
        problems.append(Problem(f"no permission to open {path}", fix))
    if path in holders:
        pid, program = holders[path]
        fix = f"sudo systemctl disable --now {program}" if program in SERVICES else f"kill {pid}   # or close it"
        problems.append(Problem(f"in use by {program} (pid {pid})", fix))
    return problems


def _group_fix(node: Path) -> str:
    """Serial ports belong to a group, dialout or uucp as the distribution likes: join the one it is."""
    group = "dialout"
    try:
        status = node.stat()
        if status.st_gid != 0 and status.st_mode & stat.S_IWGRP:
            group = grp.getgrgid(status.st_gid).gr_name
    except (OSError, KeyError):
        pass
    return f"sudo usermod -aG {group} $USER   # then log in again"


def _serial(root: Path, holders: Holders) -> list[Device]:
    by_id = root / "dev/serial/by-id"
    links = {_link(by_id / n).rpartition("/")[2]: f"/dev/serial/by-id/{n}" for n in _names(by_id)}
    consoles = _read(root / "sys/class/tty/console/active").split()
    lacking = _library_problem("serial")
    found = []
    for tty in _names(root / "sys/class/tty"):
        entry = root / "sys/class/tty" / tty
        if not (entry / "device").exists() or (tty.startswith("ttyS") and _read(entry / "type") == "0"):
            continue  # a virtual terminal, or a port the board only has a number for
        path, usb = f"/dev/{tty}", _usb(entry, root)
        problems = _node_problems(root, path, holders, _group_fix(root / "dev" / tty))
        if tty in consoles:
            problems.append(Problem("the kernel's console writes to it", f"# boot without console={tty}"))
        name = " ".join(usb[k] for k in ("manufacturer", "product") if k in usb) or "board serial port"
        stable, config = links.get(tty) or usb.get("serial", ""), _serial_config(links.get(tty, ""), path, usb)
        library, hindrances = LIBRARY["serial"], (*lacking, *problems)
        found.append(Device("serial", path, name, stable, library, not lacking, hindrances, config))
    return found


def _serial_config(link: str, path: str, usb: dict[str, str]) -> str:
    """An address that outlives replugging where there is one, and the simplest frame: one number in a line of text."""
    address = f"port = {_toml(link or path)}"
    if not link and {"idVendor", "idProduct", "serial"} <= usb.keys():
        address = f"usb = {_toml(':'.join(usb[k] for k in ('idVendor', 'idProduct', 'serial')))}"
    return f'{address}\nbaud = 115200\nreceive = {{ format = "csv", fields = ["x"] }}'


def _hid(root: Path, holders: Holders) -> list[Device]:
    lacking = _library_problem("hid")
    found = []
    for raw in _names(root / "sys/class/hidraw"):
        uevent = _read(root / "sys/class/hidraw" / raw / "device/uevent")
        said = {k: v.strip() for k, v in re.findall(r"^(HID_\w+)=(.*)$", uevent, re.MULTILINE)}
        numbers, serial = _hid_numbers(said.get("HID_ID", "")), said.get("HID_UNIQ", "")
        problems = (*lacking, *_node_problems(root, f"/dev/{raw}", holders, _hid_rule(numbers)))
        config = _hid_address(numbers, serial) or f"path = {_toml(f'/dev/{raw}')}"
        config += _hid_channels(root / "sys/class/hidraw" / raw / "device/report_descriptor")
        name, library = said.get("HID_NAME") or "HID device", LIBRARY["hid"]
        found.append(Device("hid", f"/dev/{raw}", name, serial, library, not lacking, problems, config))
    return found


def _hid_numbers(hid_id: str) -> tuple[int, int, int] | None:
    """(bus, vendor, product) from `0003:0000046D:0000C215`."""
    parts = re.fullmatch(r"([0-9A-F]{1,4}):([0-9A-F]{1,8}):([0-9A-F]{1,8})", hid_id, re.IGNORECASE | re.ASCII)
    return (int(parts[1], 16), int(parts[2], 16), int(parts[3], 16)) if parts else None


def _hid_address(numbers: tuple[int, int, int] | None, serial: str) -> str:
    """By maker and product, since hidraw numbers change with the order of plugging in."""
    if not numbers:
        return ""
    lines = [f"vendor = 0x{numbers[1]:04x}", f"product = 0x{numbers[2]:04x}"]
    return "\n".join([*lines, f"serial = {_toml(serial)}"] if serial else lines)


def _hid_channels(descriptor: Path) -> str:
    """The line that names its axes and buttons, where the kernel shows what it has."""
    from drivers.hid.report import DescriptorError, Kind, parse
    from drivers.hid.usages import picks_of

    try:
        picks = picks_of(parse(descriptor.read_bytes()).of(Kind.INPUT))
    except (OSError, DescriptorError):
        return ""
    return f"\nchannels = {json.dumps([p.name for p in picks])}" if picks else ""


def _hid_rule(numbers: tuple[int, int, int] | None) -> str:
    """A udev rule by the HID bus's own name, which fits USB and Bluetooth alike.

    It grants a group, not the user at the screen (`uaccess`): a node is started over the network as a rule.
    """
    match = 'KERNELS=="{:04X}:{:04X}:{:04X}.*"'.format(*numbers) if numbers else 'SUBSYSTEM=="hidraw"'
    return (
        "sudo tee -a /etc/udev/rules.d/70-hilnode.rules <<< \\\n"
        f"""'KERNEL=="hidraw*", {match}, GROUP="input", MODE="660"'\n"""
        "sudo udevadm control --reload && sudo udevadm trigger\n"
        "sudo usermod -aG input $USER   # then log in again"
    )


def _can(root: Path) -> list[Device]:
    lacking = _library_problem("can")
    found = []
    for net in _names(root / "sys/class/net"):
        entry = root / "sys/class/net" / net
        if _read(entry / "type") != ARPHRD_CAN:
            continue
        real, usb = (entry / "device").exists(), _usb(entry, root)
        problems = []
        if not _is_up(_read(entry / "flags")):
            rate = " type can bitrate 500000   # the rate of your bus" if real else ""
            problems.append(Problem("the interface is down", f"sudo ip link set {shlex.quote(net)} up{rate}"))
        words = " ".join(usb[k] for k in ("manufacturer", "product") if k in usb)
        name = words or ("CAN interface" if real else "virtual CAN interface")
        config = f'channel = {_toml(net)}\ndbc = "ecu.dbc"\nreceive = ["EngineData"]'
        serial, library, hindrances = usb.get("serial", ""), LIBRARY["can"], (*lacking, *problems)
        found.append(Device("can", net, name, serial, library, not lacking, hindrances, config))
    return found


def _is_up(flags: str) -> bool:
    try:
        return bool(int(flags, 16) & IFF_UP)
    except ValueError:
        return False


def _daq() -> list[Device]:
    """National Instruments cards. The package may be there without NI's driver: that is a remark, not an error."""
    library = LIBRARY["daq"]
    try:
        system = importlib.import_module(f"{library}.system")
        cards = list(system.System.local().devices)
        return [_card(c) for c in cards]
    except ModuleNotFoundError as e:
        if (e.name or "").partition(".")[0] == library:
            return []
        what = str(e)
    except Exception as e:
        what = f"{type(e).__name__}: {e}"
    told = " ".join(what.split())[:200]
    fix = "python -m nidaqmx installdriver   # NI's own driver; on Ubuntu, Red Hat and openSUSE"
    problem = Problem(f"{library} is installed but cannot list cards: {told}", fix)
    return [Device("daq", "", "NI-DAQmx", "", library, False, (problem,))]


def _card(card: Any) -> Device:
    """By its name, which NI's driver keeps for it, and with its first analogue input if it has one."""
    name, stable = str(card.name), f"{int(card.serial_num):08X}"  # as NI prints it on the card
    config = f"device = {_toml(name)}"
    for channel in list(card.ai_physical_chans.channel_names)[:1]:
        config += f'\ninputs = [{{ name = "x", channel = {_toml(str(channel).partition("/")[2])} }}]'
    return Device("daq", name, str(card.product_type), stable, LIBRARY["daq"], config=config)


def _with_headers(devices: Iterable[Device]) -> list[Device]:
    """Make each device's address a stanza, under a name no other has."""
    taken: set[str] = set()
    done = []
    for d in devices:
        if d.id:
            base = _key(d.name) or d.kind
            names = (base, *(f"{base}_{n}" for n in range(2, len(taken) + 3)))
            key = next(n for n in names if n not in taken)
            taken.add(key)
            d = replace(d, config=f"[drivers.{key}]\nkind = {_toml(d.kind)}\n{d.config}")
        done.append(d)
    return done


def _key(name: str) -> str:
    """A name for the configuration, from what the device calls itself."""
    words = re.findall(r"[a-z0-9]+", name.lower())
    key = "_".join(words)[:40].strip("_")
    return key if key[:1].isalpha() else ""


def _toml(text: str) -> str:
    """A TOML string: for printable text JSON writes the same."""
    return json.dumps(text, ensure_ascii=False)


def to_json(devices: Iterable[Device]) -> list[dict[str, Any]]:
    """The list as plain data."""
    return [asdict(d) | {"problems": [asdict(p) for p in d.problems]} for d in devices]


def render(devices: Iterable[Device]) -> RenderableType:
    """The list for a terminal: each device, what stands in its way, and the lines to paste."""
    listed = list(devices)
    parts: list[RenderableType] = [_entry(d) for d in listed]
    if not any(d.id for d in listed):
        parts.append(Text(WITHOUT))
    return Group(*parts)


def _entry(d: Device) -> RenderableType:
    """Commands and stanzas stand on lines of their own, so that they can be copied."""
    lines = [Text.assemble((f"{d.kind} ", "bold"), (d.id, "bold cyan"), "  " if d.id else "", d.name)]
    if d.stable:
        label = "always found as" if d.stable.startswith("/dev/") else "serial number"
        lines.append(Text(f"  {label} {d.stable}", style="dim"))
    for p in d.problems:
        lines.append(Text(f"  problem: {p.what}", style="yellow"))
        lines += [Text(f"    {line}") for line in p.fix.splitlines()]
    if d.config:
        lines.append(Text("  configuration:", style="green"))
        lines += [Text(f"    {line}") for line in d.config.splitlines()]
    return Group(*lines, Text())

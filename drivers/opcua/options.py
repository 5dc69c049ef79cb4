"""The options of both kinds of OPC UA driver: channels with their nodes and types, the address, access rights."""

from __future__ import annotations

import importlib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drivers.base import DriverError, OptionError, channels_from
from drivers.options import Options
from hilnode.core.signals import Signal

PORT = 4840  # of OPC UA, by IANA
FILES = ("certificate", "private_key", "server_certificate", "client_certificate", "password_file")
NODE = re.compile(r"(?:ns=\d+;|nsu=[^;]+;)?(?:i=\d+|[sgb]=.+)")

FLOAT32 = 3.4028234663852886e38
TYPES: dict[str, tuple[float, float, bool]] = {
    "Boolean": (0, 1, True),
    "SByte": (-(2**7), 2**7 - 1, True),
    "Byte": (0, 2**8 - 1, True),
    "Int16": (-(2**15), 2**15 - 1, True),
    "UInt16": (0, 2**16 - 1, True),
    "Int32": (-(2**31), 2**31 - 1, True),
    "UInt32": (0, 2**32 - 1, True),
    "Int64": (-(2**63), 2**63 - 1, True),
    "UInt64": (0, 2**64 - 1, True),
    "Float": (-FLOAT32, FLOAT32, False),
    "Double": (-math.inf, math.inf, False),
}
"""The types of OPC UA that hold a number: least, greatest, whether it is whole."""


def number_for(value: float, type_name: str) -> float | int | bool:
    """The number of that type that is nearest to `value`; ValueError for what is no number."""
    low, high, whole = TYPES[type_name]
    if not math.isfinite(value):
        raise ValueError(f"{value} is no number: not sent")
    if type_name == "Boolean":
        return value >= 0.5
    if value <= low or value >= high:
        return low if value <= low else high
    return round(value) if whole else value


@dataclass(frozen=True, slots=True)
class Address:
    """host, port and path of `opc.tcp://host:port/path`."""

    host: str
    port: int
    path: str = ""

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"opc.tcp://{host}:{self.port}{self.path}"


@dataclass(frozen=True, slots=True)
class Credentials:
    """Files with certificates and keys, and a user; empty where there is none."""

    certificate: str = ""
    private_key: str = ""
    peer: str = ""  # the certificate of the other side, which is trusted and nobody else
    user: str = ""
    password_file: str = ""

    def password(self) -> str:
        """The first line of the file. A password in a config would stand in every run's log."""
        try:
            return Path(self.password_file).read_text("utf-8").partition("\n")[0].rstrip("\r")
        except (OSError, UnicodeDecodeError) as error:
            raise DriverError(f"password_file {self.password_file} cannot be read: {error}") from error


class OpcuaOptions(Options):
    """Options of a driver that speaks OPC UA."""

    def address(self, key: str, default: str = "") -> Address:
        """`opc.tcp://host:port/path`, or host:port, or host."""
        text = self.text(key, default)
        found = re.fullmatch(r"(?:opc\.tcp://)?(\[[0-9a-fA-F:]+\]|[^/:\s@]+)(?::(\d{1,5}))?(/\S*)?", text)
        port = int(found[2] or PORT) if found else 0
        if not found or not 0 < port < 65536:
            raise self.wrong(key, "must be an address such as 'opc.tcp://192.168.0.10:4840'")
        return Address(found[1].strip("[]"), port, found[3] or "")

    def channels(self, key: str, own: tuple[str, ...]) -> tuple[tuple[Signal, ...], list[Mapping[str, Any]]]:
        """Signals under `key`, and their tables for the keys in `own`; a name alone is a table without more."""
        items = self.given.get(key, [])
        if not isinstance(items, (list, tuple)) or not all(isinstance(item, (str, Mapping)) for item in items):
            raise self.wrong(key, "must be a list of tables such as { name = 'level', unit = 'm' }")
        items = [{"name": item} if isinstance(item, str) else item for item in items]
        signals = channels_from(self.name, key, [{k: v for k, v in item.items() if k not in own} for item in items])
        return signals, items

    def node(self, key: str, signal: Signal, item: Mapping[str, Any]) -> str:
        """Where a channel lives at a server: `ns=2;s=Torque`, `nsu=urn:maker;s=Torque` or `ns=2;i=1001`."""
        node = item.get("node")
        if not isinstance(node, str) or not NODE.fullmatch(node):
            raise OptionError(
                f"drivers.{self.name}.{key}: {signal.name}: node = {node!r}: must be the identifier of a node, such as "
                "'ns=2;s=Torque', 'ns=2;i=1001' or 'nsu=urn:maker:plc;s=Torque'"
            )
        return node

    def type(self, key: str, signal: Signal, item: Mapping[str, Any]) -> str:
        """The type of a channel that a server offers."""
        name = item.get("type", "Double")
        if not isinstance(name, str) or name not in TYPES:
            raise OptionError(
                f"drivers.{self.name}.{key}: {signal.name}: type = {name!r}: must be one of {', '.join(TYPES)}"
            )
        return name

    def credentials(self, peer: str) -> Credentials:
        """`certificate`, `private_key` and the other side's certificate under `peer`; `user` and `password_file`."""
        certificate, key, trusted = (self.text(k, "") for k in ("certificate", "private_key", peer))
        if any((certificate, key, trusted)) and not all((certificate, key, trusted)):
            raise OptionError(
                f"drivers.{self.name}: certificate, private_key and {peer} go together: without the last, anybody "
                "could be at the other end"
            )
        user, password_file = self.text("user", ""), self.text("password_file", "")
        if bool(user) != bool(password_file):
            raise OptionError(f"drivers.{self.name}: user and password_file go together")
        return Credentials(certificate, key, trusted, user, password_file)


def load(module: str) -> Any:
    """A module that needs asyncua, or a DriverError with the command that installs it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        missing = (error.name or str(error)).partition(".")[0]
        raise DriverError(f'the library {missing} is not installed: pip install "hilnode[opcua]"') from error

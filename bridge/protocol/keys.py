"""CURVE keys: who may connect from another PC, and in which role.

A folder holds everything: `node.toml` with the node's own secret key, `clients.toml` with the public key and the role
of everybody who is let in. `<name>.key.toml` is made for a client and carried over to its PC: it has the client's
secret key and the node's public one. Keys are CURVE keys (Curve25519) as ZeroMQ has them: each message is encrypted,
and both sides know whom they talk to.
"""

from __future__ import annotations

import os
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import zmq

from bridge.protocol.operations import Role

NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}")
KEY_LENGTH = 40  # [characters] of a key in Z85


class KeyFileError(ValueError):
    """A key file that is missing, unreadable or makes no sense; the message says which and what to do."""


@dataclass(frozen=True)
class Pair:
    """A public and a secret key, in Z85."""

    public: str
    secret: str

    @classmethod
    def new(cls) -> Pair:
        public, secret = zmq.curve_keypair()
        return cls(public.decode(), secret.decode())


@dataclass(frozen=True)
class ClientKey:
    """What a client needs: its own pair, and whom to expect at the other end."""

    name: str
    own: Pair
    node: str  # public key of the node


@dataclass(frozen=True)
class Guest:
    """Somebody who is let in."""

    name: str
    role: Role
    public: str


class Keyring:
    """The folder of a node."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def own(self) -> Pair:
        """The node's own pair."""
        path = self.folder / "node.toml"
        table = _read(path, f"make it with: hilnode keys new NAME --folder {self.folder}")
        return Pair(_key(path, table, "public"), _key(path, table, "secret"))

    def guests(self) -> dict[str, Guest]:
        """Everybody who is let in, by public key."""
        path = self.folder / "clients.toml"
        if not path.exists():
            return {}
        found = {}
        for name, table in _read(path, "").items():
            if not isinstance(table, dict) or str(table.get("role", "")).upper() not in Role.__members__:
                raise KeyFileError(f"{path}: [{name}] needs a role: {', '.join(r.name.lower() for r in Role)}")
            public = _key(path, table, "public")
            found[public] = Guest(name, Role[table["role"].upper()], public)
        return found

    def admit(self, name: str, role: Role) -> Path:
        """Make keys for a client: the file to carry to its PC. The node's own are made with the first one."""
        if not NAME.fullmatch(name) or name == "node":
            raise KeyFileError(f"{name!r} is no name for a client: use lower-case letters, digits, - and _, not 'node'")
        if any(g.name == name for g in self.guests().values()):
            raise KeyFileError(f"{name} is let in already; take it away first: hilnode keys revoke {name}")
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not (self.folder / "node.toml").exists():
            _write(self.folder / "node.toml", _lines(Pair.new()))
        mine, pair = self.own(), Pair.new()
        path = self.folder / f"{name}.key.toml"
        _write(path, f'name = "{name}"\n' + _lines(pair) + f"node = '{mine.public}'\n")
        self._save([*self.guests().values(), Guest(name, role, pair.public)])
        return path

    def revoke(self, name: str) -> None:
        """Revoke a client's key. A running node notices within two seconds: it refuses requests, also on connections
        that are open, and ends subscriptions."""
        guests = self.guests().values()
        if all(g.name != name for g in guests):
            raise KeyFileError(
                f"nobody called {name} is let in: {', '.join(g.name for g in guests) or 'there is no one'}"
            )
        self._save([g for g in guests if g.name != name])
        (self.folder / f"{name}.key.toml").unlink(missing_ok=True)

    def _save(self, guests: list[Guest]) -> None:
        text = "".join(f"[{g.name}]\nrole = \"{g.role.name.lower()}\"\npublic = '{g.public}'\n\n" for g in guests)
        _write(self.folder / "clients.toml", text)


def read_client_key(path: Path) -> ClientKey:
    """The file that `admit` made."""
    table = _read(path, "ask whoever runs the node for it: hilnode keys new NAME")
    return ClientKey(
        str(table.get("name", "")),
        Pair(_key(path, table, "public"), _key(path, table, "secret")),
        _key(path, table, "node"),
    )


def _lines(pair: Pair) -> str:
    return f"public = '{pair.public}'\nsecret = '{pair.secret}'\n"


def _read(path: Path, advice: str) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except OSError as error:
        raise KeyFileError(f"{path}: {error.strerror}" + (f"; {advice}" if advice else "")) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise KeyFileError(f"{path}: {error}") from error


def _key(path: Path, table: dict[str, Any], name: str) -> str:
    value = table.get(name)
    if not isinstance(value, str) or len(value) != KEY_LENGTH:
        raise KeyFileError(f"{path}: {name} must be a key of {KEY_LENGTH} characters")
    return value


def _write(path: Path, text: str) -> None:
    """Whole or not at all, and for the owner's eyes only."""
    new = path.with_suffix(".new")
    handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w") as file:
        file.write(text)
    new.replace(path)

"""A node as a systemd service: its notifications while it runs, and the unit that starts it at boot.

Under `Type=notify` systemd waits for the first tick, shows the state in `systemctl status`, and restarts a node whose
loop no longer moves. Elsewhere NOTIFY_SOCKET is not set and nothing here does anything.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

UNITS = Path("/etc/systemd/system")
WATCHDOG_S = 5  # a loop that stands still for so long is started anew
STOPS_WITHIN_S = 30


class Notifier:
    """Talks to systemd, if it is there."""

    def __init__(self) -> None:
        address = os.environ.get("NOTIFY_SOCKET", "")
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self._every = int(os.environ.get("WATCHDOG_USEC", "0")) * 0.5e-6  # [s] twice as often as it must be
        self._told = 0.0

    def tell(self, message: str) -> None:
        """Send it; a manager that does not listen is no reason to stop."""
        if self._address:
            with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
                line.connect(self._address)
                line.send(message.encode())

    def alive(self, status: Callable[[], str]) -> None:
        """Call it again and again while the loop moves."""
        now = time.monotonic()
        if self._address and now - self._told >= (self._every or 1.0):
            self._told = now
            self.tell(f"WATCHDOG=1\nSTATUS={status()}")


def unit(config: Path, user: str, directory: Path) -> str:
    """The text of a unit that runs `config`."""
    command = [sys.executable, "-m", "hilnode.cli", "run", str(config), "--quiet"]
    return f"""\
[Unit]
Description=hilnode {config.stem}
After=network.target

[Service]
Type=notify
NotifyAccess=all
ExecStart={" ".join(_quoted(word) for word in command)}
WorkingDirectory={_quoted(str(directory))}
User={user}
Restart=on-failure
RestartSec=2
WatchdogSec={WATCHDOG_S}
TimeoutStopSec={STOPS_WITHIN_S}
KillSignal=SIGINT
LimitRTPRIO=99
LimitMEMLOCK=infinity
SupplementaryGroups=dialout
AmbientCapabilities=CAP_SYS_NICE CAP_IPC_LOCK

[Install]
WantedBy=multi-user.target
"""


def _quoted(word: str) -> str:
    """As systemd reads it: % is its own sign, and what a shell would quote is quoted."""
    word = word.replace("%", "%%")
    return word if shlex.quote(word) == word else '"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"'


def unit_name(config: Path) -> str:
    """Of the unit that runs `config`."""
    return f"hilnode-{re.sub(r'[^a-zA-Z0-9_-]+', '-', config.stem)}.service"

"""Who holds a TCP port: so that "address in use" can say by whom."""

from __future__ import annotations

import errno
import socket


class PortBusy(RuntimeError):
    """Another process listens there: `pid`, 0 if it could not be found out."""

    def __init__(self, key: str, endpoint: str, pid: int) -> None:
        by = f"by process {pid}: stop it (kill {pid})" if pid else "by another user's process: stop it"
        super().__init__(f"{key} = {endpoint!r} is in use {by} or choose another port")
        self.pid = pid


class PortRefused(OSError):
    """An address that this machine has not got, or may not use."""


def check_free(key: str, endpoint: str) -> None:
    """Raise PortBusy if somebody listens on `endpoint` (tcp://host:port); other transports are not checked."""
    if not endpoint.startswith("tcp://"):
        return
    host, _, port = endpoint.removeprefix("tcp://").rpartition(":")
    host = host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as ZeroMQ does: closing connections do not count
        try:
            probe.bind(("" if host == "*" else host, int(port)))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise PortBusy(key, endpoint, listener(int(port))) from None
            why = error.strerror or str(error)
            raise PortRefused(f"{key} = {endpoint!r}: {why}. `ip addr` shows the addresses this machine has") from error


def listener(port: int) -> int:
    """Pid of the process that listens on TCP `port`, or 0."""
    import psutil  # 40 ms that only an error should cost

    for c in psutil.net_connections("tcp"):
        if c.status == psutil.CONN_LISTEN and c.laddr.port == port and c.pid:
            return int(c.pid)
    return 0

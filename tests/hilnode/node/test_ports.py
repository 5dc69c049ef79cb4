"""Who holds a port: asked of real sockets on the loopback."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from hilnode.node.ports import PortBusy, check_free, listener

KEY = "bridge.publish"


@pytest.fixture
def held() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def port_of(server: socket.socket) -> int:
    port: int = server.getsockname()[1]
    return port


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return port_of(server)


def test_a_free_port_is_free_before_and_after() -> None:
    port = free_port()
    for host in ("127.0.0.1", "*", "0.0.0.0", "localhost"):
        check_free(KEY, f"tcp://{host}:{port}")
    with socket.create_server(("127.0.0.1", port)):
        pass


@pytest.mark.parametrize("host", ["127.0.0.1", "*", "0.0.0.0", "localhost"])
def test_a_held_port_names_its_holder(host: str, held: socket.socket) -> None:
    endpoint = f"tcp://{host}:{port_of(held)}"
    with pytest.raises(PortBusy) as caught:
        check_free(KEY, endpoint)
    me = os.getpid()
    assert caught.value.pid == me
    assert str(caught.value) == (
        f"{KEY} = '{endpoint}' is in use by process {me}: stop it (kill {me}) or choose another port"
    )


def test_the_holder_may_be_another_process() -> None:
    code = (
        "import socket, sys\nserver = socket.create_server(('127.0.0.1', 0))\n"
        "print(server.getsockname()[1], flush=True)\nsys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        port = int(other.stdout.readline())
        assert listener(port) == other.pid
        with pytest.raises(PortBusy, match=rf"kill {other.pid}\)"):
            check_free(KEY, f"tcp://127.0.0.1:{port}")
    assert listener(port) == 0
    check_free(KEY, f"tcp://127.0.0.1:{port}")


def test_a_holder_that_cannot_be_seen_is_somebody_else() -> None:
    busy = PortBusy(KEY, "tcp://*:9872", 0)
    assert str(busy) == f"{KEY} = 'tcp://*:9872' is in use by another user's process: stop it or choose another port"


def test_an_address_of_another_loopback_is_not_in_the_way(held: socket.socket) -> None:
    check_free(KEY, f"tcp://127.0.0.2:{port_of(held)}")


def test_a_connection_that_is_still_closing_does_not_hold_the_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = port_of(server)
        with socket.create_connection(("127.0.0.1", port)) as client:
            accepted, _ = server.accept()
            accepted.close()  # closed on this side first: the kernel keeps the pair for a minute
            assert client.recv(1) == b""
    check_free(KEY, f"tcp://127.0.0.1:{port}")


def test_a_connection_is_no_listener(held: socket.socket) -> None:
    with socket.create_connection(("127.0.0.1", port_of(held))) as client:
        assert listener(client.getsockname()[1]) == 0


@pytest.mark.parametrize("endpoint", ["ipc:///tmp/nothing", "inproc://x"])
def test_other_transports_are_not_checked(endpoint: str) -> None:
    check_free(KEY, endpoint)


def test_an_address_that_is_not_ours_is_refused_by_the_system() -> None:
    with pytest.raises(OSError, match="assign requested address"):
        check_free(KEY, "tcp://192.0.2.1:9872")  # set aside for documentation: nobody has it


def test_an_ipv6_address_is_checked_too() -> None:
    check_free(KEY, f"tcp://[::1]:{free_port()}")

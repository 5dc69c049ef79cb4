"""Helpers of the tests that run whole nodes: a config, a device, a node in a process of its own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from hilnode.config.config import Config, load

T = TypeVar("T")
SHM = Path("/dev/shm")
HERE = Path(__file__).resolve().parent
HILNODE = [sys.executable, "-m", "hilnode.cli"]
PENDULUM = Path(__file__).resolve().parent.parent / "configs" / "pendulum.toml"
SAFE, LIVE_FROM = -1.0, 0.0
"""The test plant's `trouble.count` begins at 0, so a device whose safe value is -1 can tell safe from live."""


def wait_for(look: Callable[[], T], what: str, seconds: float = 60.0) -> T:
    """Look again and again until there is something; fail with `what` when the time is up.

    The time is long: a plant may have to be compiled on a busy machine first. Nobody waits for it unless a test fails.
    """
    until = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < until, f"waited {seconds:g} s in vain for {what}"
        time.sleep(0.002)
    return found


def config_text(name: str, text: str = "", *, autostart: bool = False, on_trip: str = "hold") -> str:
    """A node of its own: no bridge, no page, no automatic start, stays after a trip, bears a busy machine.

    More in `text`.
    """
    head = {
        "node.name": f'"{name}"',
        "node.autostart": str(autostart).lower(),
        "node.max_overruns": "0",
        "safety.on_trip": f'"{on_trip}"',
        "safety.watchdog_ms": "300",
        "bridge.enabled": "false",
        "web.enabled": "false",
    }
    kept = {key: value for key, value in head.items() if key not in text}
    if "web." in text:
        del kept["web.enabled"]
    if "bridge." in text:
        del kept["bridge.enabled"]
        if "bridge.commands" not in text:
            kept["bridge.commands"] = f'"tcp://127.0.0.1:{free_port()}"'
    return "".join(f"{key} = {value}\n" for key, value in kept.items()) + text


def make_config(folder: Path, name: str, text: str = "", **more: Any) -> Config:
    """The same as a checked Config."""
    path = folder / f"{name}.toml"
    path.write_text(config_text(name, text, **more))
    return load(path)


def free_port(kind: int = socket.SOCK_STREAM) -> int:
    """A port of 127.0.0.1 that nobody had a moment ago."""
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def own_ports() -> str:
    """Lines of a config: the bridge at ports of its own, so that it runs beside other nodes."""
    ports = (free_port() for _ in range(3))
    keys = ("publish", "commands", "ecu")
    return "".join(f'bridge.{key} = "tcp://127.0.0.1:{port}"\n' for key, port in zip(keys, ports, strict=True))


def trouble(port: int, more: str = "log.timing = false") -> str:
    """Tables of a node that steps the trouble plant and tells its step count to the device at `port`."""
    return f"""
plant.kind = "trouble_plant:create"
safety.bumpless_ms = 0
{more}
[drivers.device]
kind = "udp"
send = "127.0.0.1:{port}"
outputs = [{{ name = "count", safe = {SAFE} }}]
[signals.outputs."device.count"]
from = "trouble.count"
"""


class Device:
    """The far end of a udp driver: notes every datagram with its time of arrival [ns, CLOCK_MONOTONIC]."""

    def __init__(self, form: str = "<d") -> None:
        self.got: list[tuple[int, float]] = []
        self._form = struct.Struct(form)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self._socket.settimeout(0.1)
        self.port: int = self._socket.getsockname()[1]
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="test device")
        self._thread.start()

    def _listen(self) -> None:
        while not self._ending.is_set():
            with contextlib.suppress(TimeoutError):
                data = self._socket.recv(65536)
                self.got.append((time.monotonic_ns(), self._form.unpack(data)[0]))

    def values(self, after: int = 0) -> list[float]:
        """What arrived later than `after` [ns]."""
        return [value for when, value in self.got if when > after]

    def await_live(self, after: int = 0) -> float:
        """Wait until a live value has arrived."""
        wait_for(lambda: any(v >= LIVE_FROM for v in self.values(after)), "a live value at the device")
        return self.values()[-1]

    def await_safe(self, after: int = 0) -> int:
        """Wait for the first safe value after a moment; when it came."""
        first: Callable[[], int] = lambda: next((w for w, v in self.got if w > after and v == SAFE), 0)  # noqa: E731
        return wait_for(first, "a safe value at the device")

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join()
        self._socket.close()


def environment() -> dict[str, str]:
    """With the test plants and drivers on Python's path."""
    paths = [str(HERE / "hilnode"), str(HERE / "hilnode" / "node"), str(HERE), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


@contextlib.contextmanager
def started(command: list[str], **more: Any) -> Iterator[subprocess.Popen[str]]:
    """A process that is dead when the test is over, whatever happened."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
        **more,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.communicate()


def cli(*arguments: object, seconds: float = 60.0, **more: Any) -> subprocess.CompletedProcess[str]:
    """Run `hilnode` with these arguments to its end."""
    return subprocess.run(
        [*HILNODE, *map(str, arguments)], capture_output=True, text=True, timeout=seconds, env=environment(), **more
    )


class RemoteNode:
    """A `Node` in a process of its own (remote_node.py), so that it can be stopped, killed and still be asked."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.pid = process.pid

    def ask(self, what: str, *arguments: Any) -> Any:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([what, *arguments]) + "\n")
        self.process.stdin.flush()
        return self.answer()

    def answer(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the node's process has ended"
        answer = json.loads(line)
        assert "error" not in answer, answer["error"]
        return answer["answer"]

    @property
    def state(self) -> str:
        return str(self.ask("state"))


@contextlib.contextmanager
def remote_node(folder: Path, name: str, text: str, **more: Any) -> Iterator[RemoteNode]:
    """A started node in another process; its files are in `folder / "run"`."""
    path = folder / f"{name}.toml"
    path.write_text(config_text(name, text, **more))
    with started([sys.executable, str(HERE / "hilnode" / "remote_node.py"), str(path), str(folder / "run")]) as process:
        node = RemoteNode(process)
        node.answer()
        yield node


def events(folder: Path) -> list[dict[str, Any]]:
    """What a run wrote down, whole lines only."""
    path = folder / "events.jsonl"
    if not path.exists():
        return []
    text = path.read_text()
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]


def children(pid: int, module: str) -> list[int]:
    """Pids of the helper processes `python -m module` of a node."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (path / "cmdline").read_bytes().split(b"\0")
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == pid and module.encode() in words:
                found.append(int(path.name))
    return found


def left_in_memory(name: str) -> list[str]:
    """Segments whose name begins with `name`."""
    return sorted(path.name for path in SHM.glob(f"hilnode.{name}*"))


def is_alive(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False

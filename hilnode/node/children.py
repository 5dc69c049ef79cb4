"""The node's helper processes: started with one line of JSON, started again when they die, kept off the tick's CPU."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from hilnode.shared.realtime import kept_off

FIRST_WAIT = 0.2  # [s] before a dead child is started again; doubled each time
LONGEST_WAIT = 10.0  # [s]
HEALTHY = 60.0  # [s] one that lived this long is started again at once, as if it had never died
LAST_BYTES = 400  # of its log that are looked at for its last words
READY_WITHIN = 60.0  # [s] a slow PC reads the libraries from its disc first; one that dies is noticed at once


class Child:
    """One helper process, `python -m module`. It never runs on the CPU `spec["cpu"]`, the tick's; -1: on any."""

    def __init__(
        self,
        module: str,
        spec: dict[str, Any],
        *,
        log: Path | None,
        revive: bool,
        longest_wait: float = LONGEST_WAIT,
        name: str = "",
    ) -> None:
        """`name`: what people call it, else the last word of `module`.

        `longest_wait` [s]: one that dies again and again is started again after this time at the latest.
        """
        self.name = name or module.rpartition(".")[2]
        self.deaths = 0
        self._module, self._spec, self._log, self._revive = module, spec, log, revive
        self._longest_wait = longest_wait
        self._wait = FIRST_WAIT
        self._again_at = 0.0
        self._unsaid = ""  # what it printed that nobody has asked for yet
        self.process = self._spawn()

    def _spawn(self) -> subprocess.Popen[str]:
        errors = self._log.open("a") if self._log else None
        try:
            with kept_off(self._spec.get("cpu", -1)):  # from its first instruction on: its imports take a second
                process = subprocess.Popen(
                    [sys.executable, "-P", "-m", self._module],  # -P: a drivers.py in the current folder is not ours
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    text=True,
                    start_new_session=True,  # Ctrl-C is for the node alone
                    env={**os.environ, "PYTHONPATH": _paths()},
                )
        finally:
            if errors:
                errors.close()
        assert process.stdin is not None
        line = json.dumps(self._spec) + "\n"
        _make_room(process.stdin.fileno(), len(line))
        with contextlib.suppress(BrokenPipeError):  # dead already: `tend` will say so
            process.stdin.write(line)
            process.stdin.flush()
            os.set_blocking(process.stdin.fileno(), False)  # from here on nobody waits for it
        self._born = time.monotonic()
        return process

    def tell(self, message: dict[str, Any]) -> bool:
        """Hand it a line; False if it is dead or does not read: nobody waits for a helper."""
        assert self.process.stdin is not None
        line = json.dumps(message).encode() + b"\n"
        try:
            return len(line) <= select.PIPE_BUF and os.write(self.process.stdin.fileno(), line) == len(line)
        except OSError:
            return False

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    @property
    def failed(self) -> bool:
        """It is dead, and did not end by itself."""
        return self.process.poll() not in (None, 0)

    def wait_ready(self) -> bool:
        """Block until it says "ready"; False if it dies or says nothing within `READY_WITHIN`."""
        assert self.process.stdout is not None
        heard, _, _ = select.select([self.process.stdout], [], [], READY_WITHIN)
        return bool(heard) and self.process.stdout.readline().strip() == "ready"

    def heard(self) -> list[str]:
        """What it printed for people since the last call, line by line; nobody waits for it."""
        self._listen()
        *lines, self._unsaid = self._unsaid.split("\n")
        return [line for line in lines if line != "ready"]

    def await_word(self, seconds: float) -> bool:
        """Wait until it has printed something; `heard` gives it. False if it has not in time."""
        until = time.monotonic() + seconds
        while "\n" not in self._unsaid:
            assert self.process.stdout is not None
            left = until - time.monotonic()
            if left <= 0 or not self.alive or not select.select([self.process.stdout], [], [], left)[0]:
                return False
            self._listen()
        return True

    def _listen(self) -> None:
        if self.process.stdout is None or self.process.stdout.closed:
            return
        pipe = self.process.stdout.fileno()
        os.set_blocking(pipe, False)
        with contextlib.suppress(BlockingIOError):
            while got := os.read(pipe, 65536):
                self._unsaid += got.decode(errors="replace")

    def tend(self) -> str:
        """Look after it; a sentence if it has died since the last look."""
        if self.alive:
            return ""
        if not self._again_at:
            self.deaths += 1
            if time.monotonic() - self._born > HEALTHY:
                self._wait = FIRST_WAIT
            self._again_at = time.monotonic() + self._wait
            again = f"; starting it again in {self._wait:g} s" if self._revive else ""
            return f"the {self.name} process ended with code {self.process.returncode}{self._last_word()}{again}"
        if self._revive and time.monotonic() >= self._again_at:
            self._again_at = 0.0
            self._wait = min(2 * self._wait, self._longest_wait)
            self.start_again()
        return ""

    def start_again(self) -> None:
        """Start one that has died, at once."""
        self._close_pipes()
        self.process = self._spawn()

    def _last_word(self) -> str:
        """The last line of its log, which says why as a rule."""
        if self._log is None:
            return ""
        try:
            with self._log.open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - LAST_BYTES))
                lines = file.read().decode(errors="replace").split("\n")
        except OSError:
            return ""
        word = next((line.strip() for line in reversed(lines) if line.strip()), "")
        return f" ({word[:LAST_BYTES]})" if word else ""

    def end(self, deadline: float) -> bool:
        """Wait until it has ended by itself; at `deadline` (time.monotonic) it is killed, and the answer is False."""
        try:
            self.process.wait(max(0.01, deadline - time.monotonic()))
            willing = True
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            willing = False
        self._close_pipes()
        return willing

    def _close_pipes(self) -> None:
        self._listen()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()


def _make_room(pipe: int, size: int) -> None:
    """Let a pipe hold so many bytes: the supervisor waits for no helper, and one reads only after its imports."""
    if size > fcntl.fcntl(pipe, fcntl.F_GETPIPE_SZ):
        with contextlib.suppress(OSError):  # more than this user may have
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, size)


def _paths() -> str:
    """Where the node finds modules, so that a driver that lies beside a script is found by the watchdog too."""
    return os.pathsep.join([*(p for p in sys.path if p), os.environ.get("PYTHONPATH", "")]).strip(os.pathsep)

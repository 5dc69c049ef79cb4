"""Helper processes, with small made-up modules in their place."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hilnode.node import children
from hilnode.node.children import LONGEST_WAIT, Child

Start = Callable[..., Child]

READY_THEN_WAIT = """
    import json, sys
    json.loads(sys.stdin.readline())
    print("ready", flush=True)
    sys.stdin.read()
"""
DIES = """
    import sys
    sys.stdin.readline()
    sys.exit(3)
"""


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Starts a child from source text; whatever is left of it at the end is taken away."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    started: list[Child] = []

    def start(
        code: str,
        spec: dict[str, Any] | None = None,
        *,
        log: Path | None = None,
        revive: bool = False,
        longest_wait: float = LONGEST_WAIT,
    ) -> Child:
        (tmp_path / "lab").mkdir(exist_ok=True)
        (tmp_path / "lab" / "helper.py").write_text(textwrap.dedent(code))
        started.append(Child("lab.helper", spec or {}, log=log, revive=revive, longest_wait=longest_wait))
        return started[-1]

    yield start
    for child in started:
        child.process.kill()
        child.end(0.0)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The children's clock, to be moved by hand: `clock.now`."""
    clock = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(children, "time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


SAYS_WHERE = """
    import os, sys
    print(sorted(os.sched_getaffinity(0)), flush=True)
    sys.stdin.readline()
    sys.stdin.read()
"""


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
def test_it_never_runs_on_the_cpu_of_the_tick_also_when_it_is_started_again(
    start: Start, clock: SimpleNamespace
) -> None:
    """Whatever the thread may do that starts it: before a helper has read its first line it is off that CPU."""
    allowed = os.sched_getaffinity(0)
    child = start(SAYS_WHERE, {"cpu": max(allowed)}, revive=True)
    for _ in range(2):
        assert child.process.stdout is not None
        assert json.loads(child.process.stdout.readline()) == sorted(allowed - {max(allowed)})
        assert os.sched_getaffinity(0) == allowed  # the node's thread goes on as it was
        child.process.kill()
        child.process.wait()
        child.tend()
        clock.now += 1.0
        child.tend()


def test_the_child_is_a_module_that_gets_its_spec_in_one_line(start: Start, tmp_path: Path) -> None:
    spec = {"node": "bench", "text": "two\nlines, ünïcode", "numbers": [1, 2.5, None], "out": str(tmp_path / "got")}
    child = start(
        """
        import json, os, pathlib, sys
        spec = json.loads(sys.stdin.readline())
        pathlib.Path(spec["out"]).write_text(json.dumps([spec, __name__, os.getsid(0), os.getpid()]))
        print("ready", flush=True)
        """,
        spec,
    )
    assert child.name == "helper"
    assert child.wait_ready()
    assert child.process.wait(10) == 0
    got, name, session, pid = json.loads((tmp_path / "got").read_text())
    assert got == spec
    assert name == "__main__"
    assert session == pid == child.process.pid  # a session of its own: Ctrl-C does not reach it


def test_ready_while_it_lives_and_not_when_it_dies_or_babbles(start: Start) -> None:
    child = start(READY_THEN_WAIT)
    assert child.wait_ready()
    assert child.alive
    assert child.tend() == ""
    assert not start(DIES).wait_ready()
    assert not start("print('hello', flush=True); input(); input()").wait_ready()


def test_a_death_is_told_once_and_not_mended_unless_asked(start: Start, clock: SimpleNamespace) -> None:
    child = start(DIES)
    process = child.process
    process.wait(10)
    assert not child.alive
    assert child.tend() == "the helper process ended with code 3"
    clock.now += 1e6
    assert child.tend() == ""
    assert child.process is process
    assert child.deaths == 1


def test_it_is_started_again_with_longer_and_longer_waits(start: Start, clock: SimpleNamespace) -> None:
    child = start(DIES, revive=True)
    for count, wait in enumerate([0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10, 10], 1):
        process = child.process
        process.wait(10)
        assert child.tend() == f"the helper process ended with code 3; starting it again in {wait:g} s"
        assert child.deaths == count
        clock.now += wait - 0.001
        assert child.tend() == ""
        assert child.process is process
        clock.now += 0.002
        assert child.tend() == ""
        assert child.process.pid != process.pid
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdin.closed
        assert process.stdout.closed


def test_one_that_is_needed_sooner_is_back_sooner(start: Start, clock: SimpleNamespace) -> None:
    """The recorder of rows: the ring must still hold what came since."""
    child = start(DIES, revive=True, longest_wait=0.5)
    for wait in [0.2, 0.4, 0.5, 0.5]:
        child.process.wait(10)
        assert child.tend().endswith(f"starting it again in {wait:g} s")
        clock.now += wait + 0.001
        assert child.tend() == ""


def test_nobody_waits_until_a_child_reads_a_long_spec(start: Start) -> None:
    """The recorder's of an excavator has 290 kB; a child that hangs in its imports must not hang the supervisor."""
    began = time.monotonic()
    child = start(
        """
        import json, sys, time
        time.sleep(20)
        print(len(json.loads(sys.stdin.readline())["text"]), flush=True)
        """,
        {"text": "x" * 900_000},
    )
    assert time.monotonic() - began < 15
    assert child.await_word(60)
    assert child.heard() == ["900000"]


def test_it_has_failed_when_it_is_dead_and_not_by_its_own_will(start: Start) -> None:
    child = start(READY_THEN_WAIT)
    assert child.wait_ready()
    assert not child.failed
    child.process.kill()
    assert child.end(time.monotonic() + 10)
    assert child.failed
    child.start_again()
    assert child.wait_ready()
    assert child.process.stdin is not None
    child.process.stdin.close()  # it ends by itself
    assert child.end(time.monotonic() + 10)
    assert not child.failed


def test_a_revived_child_gets_the_same_spec_and_log(start: Start, clock: SimpleNamespace, tmp_path: Path) -> None:
    log = tmp_path / "helper.log"
    log.write_text("before\n")
    child = start("import sys; sys.exit(sys.stdin.readline())", {"turn": 1}, log=log, revive=True)
    for _ in range(2):
        child.process.wait(10)
        assert "ended with code 1" in child.tend()
        clock.now += 20
        child.tend()
    child.process.wait(10)
    assert log.read_text().split("\n") == ["before", *['{"turn": 1}', ""] * 3, ""]


def test_killed_by_a_signal_is_told_as_such(start: Start) -> None:
    child = start(READY_THEN_WAIT)
    child.wait_ready()
    os.kill(child.process.pid, signal.SIGKILL)
    child.process.wait(10)
    assert child.tend() == "the helper process ended with code -9"


def test_errors_go_to_the_log_and_not_to_the_pipe(start: Start, tmp_path: Path) -> None:
    log = tmp_path / "helper.log"
    child = start("import sys; sys.stdin.readline(); print('on paper', file=sys.stderr); 1 / 0", log=log)
    assert not child.wait_ready()
    child.process.wait(10)
    text = log.read_text()
    assert text.startswith("on paper\n")
    assert "ZeroDivisionError" in text
    assert child.tend() == "the helper process ended with code 1 (ZeroDivisionError: division by zero)"


def test_without_a_log_errors_go_where_the_node_s_own_go(tmp_path: Path) -> None:
    (tmp_path / "loud.py").write_text("import sys; sys.stdin.readline(); sys.exit('out loud')")
    code = (
        "import time\nfrom hilnode.node.children import Child\n"
        "Child('loud', {}, log=None, revive=False).end(time.monotonic() + 10)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
    )
    assert done.stderr == "out loud\n"


def test_end_waits_for_a_child_that_ends_by_itself(start: Start) -> None:
    child = start("import sys, time; sys.stdin.readline(); time.sleep(0.2); sys.exit(5)")
    began = time.monotonic()
    child.end(began + 30)
    assert child.process.returncode == 5
    assert time.monotonic() - began < 20


def test_end_kills_at_the_deadline_one_that_does_not(start: Start) -> None:
    child = start("""
        import signal, sys, time
        for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(name, signal.SIG_IGN)
        print("ready", flush=True)
        time.sleep(60)
    """)
    assert child.wait_ready()
    began = time.monotonic()
    child.end(began + 0.3)
    took = time.monotonic() - began
    assert child.process.returncode == -signal.SIGKILL
    assert 0.3 <= took < 10
    assert child.process.stdin is not None
    assert child.process.stdin.closed


def test_end_after_the_deadline_kills_at_once(start: Start) -> None:
    child = start(READY_THEN_WAIT)
    child.wait_ready()
    began = time.monotonic()
    child.end(began - 5)
    assert child.process.returncode == -signal.SIGKILL
    assert time.monotonic() - began < 10


def test_a_child_that_dies_before_it_reads_is_a_death_like_any_other(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[subprocess.Popen[str]] = []

    class Popen(subprocess.Popen[str]):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            made.append(self)

    monkeypatch.setattr(children.subprocess, "Popen", Popen)
    monkeypatch.setattr(children, "_make_room", lambda *_: None)
    try:
        child = start("import sys; sys.exit(3)", {"text": "x" * 1_000_000})  # more than a pipe holds
        child.process.wait(10)
        assert "ended with code 3" in child.tend()
    finally:
        for process in made:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()  # type: ignore[union-attr]


def test_what_it_says_is_heard_without_waiting(start: Start) -> None:
    child = start(
        """
        import sys
        sys.stdin.readline()
        print("ready", flush=True)
        sys.stdin.readline()
        print("the disc is full\\nso much for that\\nhalf a", flush=True, end="")
        """
    )
    assert child.heard() == []
    assert child.await_word(30.0)
    assert child.heard() == []  # being ready is not for people
    assert child.tell({"go": "on"})
    assert child.end(time.monotonic() + 30.0)
    assert child.heard() == ["the disc is full", "so much for that"]


def test_nobody_waits_for_the_word_of_one_that_dies(start: Start) -> None:
    began = time.monotonic()
    assert not start(DIES).await_word(60.0)
    assert time.monotonic() - began < 50.0

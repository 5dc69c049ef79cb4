"""A picture of the excavator at work, as the page in the browser shows it: docs/images/excavator.png.

    python tools/picture.py                        runs the default machine until it digs on in its trench, and takes it
    python tools/picture.py --recording runs/dig   the same of a recording, at --at seconds
    python tools/picture.py --out somewhere.png --eye -6 -9 4 --towards 3 0 1

It is drawn by Chromium at full quality without a graphics card, which takes seconds a picture: so the machine is paused
meanwhile, and the readings of the page's own speed are left out of it.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import io
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from PIL import Image

from bridge import Node
from bridge.protocol.operations import NodeError

TOP = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TOP / "tests" / "web"))

from browser import Browser  # noqa: E402

HILNODE = (sys.executable, "-m", "hilnode.cli")
PUBLISH, COMMANDS, ADDRESS = "tcp://127.0.0.1:19872", "tcp://127.0.0.1:19873", "http://127.0.0.1:18081"
ECU, NAME = "tcp://127.0.0.1:19874", "picture"
EYE, TOWARDS = (-1.4, -9.2, 3.4), (3.5, 0.0, 1.1)  # [m] of the world
WORKS_FOR = 70.0  # [s] of simulated time until there is a trench
FILL, FULL, FILLS_WITHIN = "excavator.bucket.fill", 0.6, 60.0  # what is waited for then, and how long [s]
SHRINK, LARGEST = 0.8, 195_000  # of the picture's sides, and bytes that its file may have
NOT_IN_IT = ".reading, .hint"  # what tells how fast this page draws, and what to do with a mouse


@contextlib.contextmanager
def process(*command: str) -> Iterator[Callable[[], None]]:
    """One of our own programs, ended at the end; what comes back raises if it has ended by itself."""
    with tempfile.TemporaryFile("w+") as said:
        started = subprocess.Popen([*HILNODE, *command], stdout=said, stderr=said)

        def check() -> None:
            if started.poll() is not None:
                said.seek(0)
                raise RuntimeError(f"hilnode {command[0]} has ended with {started.returncode}: {said.read()[-2000:]}")

        try:
            yield check
        finally:
            started.terminate()
            started.wait(30)


@contextlib.contextmanager
def at_work(seconds: float) -> Iterator[None]:
    """The default machine after so much work."""
    with tempfile.TemporaryDirectory() as folder:
        keys = {"bridge.publish": PUBLISH, "bridge.commands": COMMANDS, "bridge.ecu": ECU, "web.address": ADDRESS}
        keys |= {"node.name": NAME}  # another excavator may be running here
        keys |= {"node.max_overruns": "0", "safety.watchdog": "false"}  # a slow PC takes pictures too
        words = [word for key, value in keys.items() for word in ("--set", f"{key}={value}")]
        with process("run", "--quiet", "--out", f"{folder}/run", *words) as check:
            wait_for_time(seconds, check)
            with Node(COMMANDS) as node:
                node.wait_until(FILL, gt=FULL, timeout=FILLS_WITHIN)
                node.ask("pause")
            yield


@contextlib.contextmanager
def recorded(run: Path) -> Iterator[None]:
    """A recording that stands, and a page of it."""
    where = ("--publish", PUBLISH, "--commands", COMMANDS)
    with (
        process("replay", str(run), "--stay", "--paused", *where) as replay,
        process("view", COMMANDS, "--listen", ADDRESS) as view,
    ):
        wait_for_page(replay, view)
        yield


def wait_for_page(*checks: Callable[[], None]) -> None:
    """Until the server listens."""
    host, port = ADDRESS.removeprefix("http://").split(":")
    until = time.monotonic() + 60
    while time.monotonic() < until:
        with contextlib.suppress(OSError), socket.create_connection((host, int(port)), 1.0):
            return
        for check in checks:
            check()
        time.sleep(0.2)
    raise TimeoutError(f"nobody listens at {ADDRESS}")


def wait_for_time(seconds: float, check: Callable[[], None]) -> None:
    """Until the machine has worked for so long; it may have to be compiled first."""
    until = time.monotonic() + 900 + 3 * seconds
    while time.monotonic() < until:
        with contextlib.suppress(NodeError), Node(COMMANDS, timeout=1.0) as node:
            status = node.status()
            if status["state"] == "running" and status["step"] * 1e-3 >= seconds:
                return
        check()
        time.sleep(0.2)
    raise TimeoutError("the machine does not work")


def take(eye: list[float], towards: list[float], width: int, height: int, moment: float | None) -> bytes:
    """The page from this place, as PNG; a recording is put to the moment first."""
    with Browser(width, height) as browser:
        page = browser.open(f"{ADDRESS}/?quality=full")
        page.wait("window.hilnode?.hello", 300)
        if moment is not None:
            with Node(COMMANDS) as node:
                node.ask("seek", to=moment)
        page.wait("hilnode.frame > 0", 300)
        page.run(f"hilnode.camera({eye}, {towards})")
        page.run(f"document.querySelectorAll('{NOT_IN_IT}').forEach((e) => e.remove())")
        page.wait(f"hilnode.pictures.length > {page.run('hilnode.pictures.length')} + 2", 300)
        return base64.b64decode(page.call("Page.captureScreenshot", format="png")["data"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=TOP / "docs" / "images" / "excavator.png")
    parser.add_argument("--recording", type=Path, help="folder of a run that was recorded")
    parser.add_argument("--at", type=float, default=WORKS_FOR, help="seconds of simulated time")
    parser.add_argument("--eye", type=float, nargs=3, default=EYE, help="where the picture is taken from [m]")
    parser.add_argument("--towards", type=float, nargs=3, default=TOWARDS, help="what it looks at [m]")
    parser.add_argument("--size", type=int, nargs=2, default=(1280, 720), help="of the browser's window")
    given = parser.parse_args()
    with recorded(given.recording) if given.recording else at_work(given.at):
        moment = given.at if given.recording else None
        picture = take(list(given.eye), list(given.towards), *given.size, moment)
    given.out.write_bytes(small(picture))
    print(f"{given.out}: {given.out.stat().st_size / 1e3:.0f} KB")
    return 0


def small(picture: bytes) -> bytes:
    """A little smaller, with as many colours as fit: a page that is read has no use for more."""
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    image = image.resize((round(SHRINK * image.width), round(SHRINK * image.height)), Image.Resampling.LANCZOS)
    for colours in (256, 192, 160, 128, 96, 64):
        made = io.BytesIO()
        image.quantize(colours, kmeans=2, dither=Image.Dither.NONE).save(made, "PNG", optimize=True)
        if made.tell() < LARGEST:
            break
    return made.getvalue()


if __name__ == "__main__":
    sys.exit(main())

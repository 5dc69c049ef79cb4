"""The virtual lab PC: HID devices, CAN buses and USB gadgets for the drivers' tests, on a machine that has none.

    tools/lab_pc.py test                 build what is missing, then run tests/lab in there (make test-lab)
    tools/lab_pc.py test -k joystick     the same with options for pytest
    tools/lab_pc.py run bash             any command, such as a shell

Exit code: the command's; 1 if the lab PC failed; 77 if programs are missing here (0 with --if-possible).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from labvm import kernel, machine

TOP = Path(__file__).resolve().parent.parent
MISSING = 77
SECONDS = 480.0
PYTEST = [
    *(sys.executable, "-m", "pytest", "-v", "--tb=short", "--durations=8"),
    *(word for plugin in ("cacheprovider", "hypothesispytest", "xdist", "anyio") for word in ("-p", f"no:{plugin}")),
    *("-m", "lab", "tests/lab"),
]


def say(line: str) -> None:
    print(line, flush=True)


def environment() -> dict[str, str]:
    """For the lab PC and for what is compiled for it here: code for any x86-64, in a cache of its own.

    The emulated CPU is not this machine's, and what is compiled for this one would be compiled again in there, slowly.
    """
    given = {key: os.environ[key] for key in ("PATH", "HOME", "PYTHONPATH") if key in os.environ}
    return {
        **given,
        "LANG": "C.UTF-8",
        "HILNODE_CACHE": str(kernel.cache_home() / "compiled"),
        "NUMBA_CPU_NAME": "generic",
        "HILNODE_LAB": "1",
    }


def compile_here() -> None:
    """Compile what the tests need, on this machine: a cache hit in there instead of many minutes."""
    subprocess.run([sys.executable, str(TOP / "tests/lab/warm_lab.py")], env=environment(), check=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="a lab PC that takes longer has failed")
    parser.add_argument("--if-possible", action="store_true", help="succeed, with a word, where programs are missing")
    parser.add_argument("what", choices=["build", "test", "run"])
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="for pytest; or the command")
    given = parser.parse_args()
    began = time.monotonic()
    try:
        image = kernel.build(say)
        if given.what == "build":
            return 0
        compile_here()
        command = given.arguments or ["bash"]
        if given.what == "test":
            command = [*PYTEST, f"--color={'yes' if sys.stdout.isatty() else 'no'}", *given.arguments]
        say(f"lab: starting the lab PC after {time.monotonic() - began:.0f} s ...")
        return machine.run(
            image,
            command,
            folder=TOP,
            environment=environment(),
            seconds=given.seconds,
            interactive=given.what == "run" and sys.stdin.isatty(),
        )
    except kernel.ToolsMissing as error:
        say(f"lab: left out: {error}" if given.if_possible else f"lab: {error}")
        return 0 if given.if_possible else MISSING
    except (kernel.LabError, subprocess.CalledProcessError) as error:
        say(f"lab: {error}")
        return 1


if __name__ == "__main__":
    sys.exit(main())

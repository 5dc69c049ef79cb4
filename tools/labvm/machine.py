"""Starts the lab PC, runs one command in it and brings back its exit code.

The command has ended well only if the lab PC says so: it writes the exit code into a folder that both sides see. A
panic, a hang or a QEMU that will not start leaves no exit code, and that is a failure.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from labvm.kernel import Image, LabError

MEMORY = 2048  # [MB]
LOG_LINES = 30  # of the kernel's log, shown after a failure
BOOT = " ".join(
    (
        "console=ttyS0 quiet panic=-1 oops=panic",  # a panic switches off at once
        "mitigations=off nokaslr no5lvl tsc=reliable",  # what costs an emulated CPU most
        "random.trust_cpu=on",
    )
)


def run(
    image: Image,
    command: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    seconds: float,
    interactive: bool = False,
) -> int:
    """The exit code of `command`, run as root in `folder`; LabError when there is none after `seconds`."""
    with tempfile.TemporaryDirectory(prefix="hilnode-lab-") as name:
        exchange = Path(name)
        (exchange / "command").write_text(_script(command, folder, environment))
        ending = _start(image, exchange, seconds, interactive)
        verdict = exchange / "exit-code"
        if verdict.exists():
            return int(verdict.read_text())
        log = exchange / "boot.log"
        last = log.read_text(errors="replace").splitlines()[-LOG_LINES:] if log.exists() else []
        print("\n".join(last), file=sys.stderr)
        raise LabError(f"the lab PC {ending} and left no exit code: a failure. The end of its kernel's log is above")


def _script(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> str:
    exports = [f"export {key}={shlex.quote(value)}" for key, value in environment.items()]
    return "\n".join([*exports, f"cd {shlex.quote(str(folder))} || exit 1", f"exec {shlex.join(command)}", ""])


def _start(image: Image, exchange: Path, seconds: float, interactive: bool) -> str:
    """Run QEMU to its end; how it ended, for people."""
    stdin = None if interactive else subprocess.DEVNULL
    with subprocess.Popen(qemu(image, exchange), stdin=stdin) as process:
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            return f"was not done after {seconds:g} s"
        finally:
            process.kill()
    return f"ended early (QEMU's exit code is {code})"


def qemu(image: Image, exchange: Path) -> list[str]:
    """The command line: this machine's files to read, a folder to exchange, a console, and nothing else."""
    accel = os.environ.get("HILNODE_LAB_ACCEL", "tcg,thread=multi")
    words: list[object] = [
        *("qemu-system-x86_64", "-nodefaults", "-display", "none", "-no-reboot"),
        *("-accel", accel, "-cpu", "max", "-smp", 2, "-m", MEMORY),
        *("-kernel", image.kernel, "-initrd", image.initrd, "-append", BOOT),
        *("-serial", f"file:{exchange / 'boot.log'}"),
        *("-device", "virtio-serial-pci", "-chardev", "stdio,id=console,signal=off"),
        *("-device", "virtconsole,chardev=console"),
        *("-virtfs", "local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap"),
        *("-virtfs", f"local,path={exchange},mount_tag=exchange,security_model=none"),
    ]
    return [str(word) for word in words]

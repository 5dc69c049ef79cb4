"""The virtual lab PC from outside: what it is made of, and that only a good end counts as one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from labvm import kernel, machine

TOP = Path(__file__).resolve().parents[2]
LAB = [sys.executable, str(TOP / "tools" / "lab_pc.py")]


def module(folder: Path, name: str, depends: str) -> Path:
    path = folder / name
    path.write_bytes(b"\x7fELF...\0license=GPL\0depends=" + depends.encode() + b"\0vermagic=x\0")
    return path


def test_modules_come_after_what_they_depend_on(tmp_path: Path) -> None:
    found = {
        "uhid": module(tmp_path, "uhid.ko", "hid"),
        "hid": module(tmp_path, "hid.ko", ""),
        "hid_generic": module(tmp_path, "hid-generic.ko", "hid"),
        "can_raw": module(tmp_path, "can-raw.ko", "can-core,hid"),
        "can_core": module(tmp_path, "can-core.ko", ""),
    }
    assert kernel.in_order(["uhid", "hid_generic", "can_raw"], found) == [
        *("hid", "uhid", "hid_generic", "can_core", "can_raw")
    ]
    with pytest.raises(kernel.LabError, match="no module vcan"):
        kernel.in_order(["vcan"], found)


def test_python_is_not_a_static_program() -> None:
    assert not kernel.is_static(Path(sys.executable).resolve().read_bytes())


@pytest.mark.skipif(not shutil.which("busybox"), reason="busybox unpacks the archive")
def test_the_archive_is_what_cpio_reads(tmp_path: Path) -> None:
    files = {"bin": None, "bin/odd": b"12345", "init": b"x" * 4096, "empty": b""}
    subprocess.run(["busybox", "cpio", "-i"], input=kernel.pack(files), cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "bin").is_dir()
    assert {p: (tmp_path / p).read_bytes() for p in files if files[p] is not None} == {
        p: content for p, content in files.items() if content is not None
    }
    assert os.access(tmp_path / "init", os.X_OK)


@pytest.mark.parametrize(("options", "code"), [([], 77), (["--if-possible"], 0)])
def test_missing_programs_are_named_with_the_command(tmp_path: Path, options: list[str], code: int) -> None:
    done = subprocess.run(
        [*LAB, *options, "test"], env={"PATH": str(tmp_path)}, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == code
    assert "apt-get install --no-install-recommends" in done.stdout
    assert "busybox-static" in done.stdout
    assert "qemu-system-x86" in done.stdout
    assert len(done.stdout.splitlines()) == 1


def have_tools() -> bool:
    try:
        kernel.check_tools()
    except kernel.ToolsMissing:
        return False
    return True


def in_the_lab(command: str, seconds: float = 120.0) -> int:
    image = kernel.build(print)
    return machine.run(
        image, ["sh", "-c", command], folder=TOP, environment={"PATH": os.environ["PATH"]}, seconds=seconds
    )


@pytest.mark.slow
@pytest.mark.skipif(not have_tools(), reason="make test-lab says what is missing")
class TestVerdict:
    @pytest.mark.parametrize("code", [0, 3])
    def test_the_exit_code_comes_back(self, code: int) -> None:
        assert in_the_lab(f"exit {code}") == code

    def test_a_panic_is_a_failure(self) -> None:
        with pytest.raises(kernel.LabError, match="no exit code"):
            in_the_lab("echo 1 > /proc/sys/kernel/sysrq; echo c > /proc/sysrq-trigger; sleep 60")

    def test_a_hang_is_a_failure(self) -> None:
        with pytest.raises(kernel.LabError, match="not done after 30 s"):
            in_the_lab("sleep 600", seconds=30.0)

    def test_files_of_this_machine_can_not_be_changed(self, tmp_path: Path) -> None:
        mine = tmp_path / "mine"
        mine.write_text("untouched")
        assert in_the_lab(f"echo changed > {mine} && grep changed {mine}") == 0
        assert mine.read_text() == "untouched"

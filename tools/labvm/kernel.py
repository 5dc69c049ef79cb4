"""The lab PC's kernel: a Debian package, unpacked and not installed, with the few modules that the tests need.

The package comes from wherever this machine's apt gets its packages. Root is not needed.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import lzma
import os
import re
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

PACKAGE = "linux-image-amd64"
MODULES = (
    *("virtio_pci", "virtio_console", "9pnet_virtio", "9p", "overlay"),  # the PC itself
    *("uhid", "hid_generic", "usbhid", "dummy_hcd", "usb_f_hid"),  # HID, by program and by USB
    *("vcan", "can_raw", "can_bcm"),
)
OPTIONS = {"hid": "ignore_special_drivers=1"}  # Linux has drivers of its own for some sticks: here all are plain HID
KEEP = 3  # kernels kept in the cache
INIT = Path(__file__).with_name("init.sh")
TOOLS = {
    "qemu-system-x86_64": "qemu-system-x86",
    "busybox": "busybox-static",
    "apt-get": "apt",
    "dpkg-deb": "dpkg",
}
"""Programs, and the Debian packages they are in."""


class LabError(RuntimeError):
    """The lab PC can not be built or run; the message says what to do about it."""


class ToolsMissing(LabError):
    """Programs or packages that this machine does not have and cannot get."""


@dataclass(frozen=True)
class Image:
    """What QEMU starts."""

    kernel: Path
    initrd: Path


def cache_home() -> Path:
    """`HILNODE_LAB_CACHE`, else a folder of the user's cache."""
    if given := os.environ.get("HILNODE_LAB_CACHE"):
        return Path(given).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hilnode-lab"


def check_tools() -> None:
    """Raise ToolsMissing with the one command that helps."""
    missing = {package for tool, package in TOOLS.items() if not shutil.which(tool)}
    if (busybox := shutil.which("busybox")) and not is_static(Path(busybox).read_bytes()):
        missing.add("busybox-static")
    if missing:
        raise ToolsMissing(
            "the virtual lab PC needs Debian packages that are not here: "
            f"sudo apt-get install --no-install-recommends {' '.join(sorted(missing))}"
        )


def is_static(program: bytes) -> bool:
    """Whether a 64-bit ELF program runs without libraries: none of its segments names a loader (PT_INTERP = 3)."""
    if program[:5] != b"\x7fELF\x02":
        return False
    (table,) = struct.unpack_from("<Q", program, 32)
    size, count = struct.unpack_from("<HH", program, 54)
    return all(struct.unpack_from("<I", program, table + i * size)[0] != 3 for i in range(count))


def build(say: Callable[[str], None]) -> Image:
    """The image, from the cache if it has been built before from the same kernel and recipe."""
    check_tools()
    package, version = newest_kernel()
    busybox = Path(shutil.which("busybox") or "").read_bytes()
    recipe = hashlib.sha256(INIT.read_bytes() + Path(__file__).read_bytes() + busybox).hexdigest()[:8]
    place = cache_home() / f"{package}_{version.replace(':', '.')}_{recipe}"
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place.parent) as scratch:
            _make(package, busybox, Path(scratch), say)
            with contextlib.suppress(OSError):  # somebody else was quicker
                os.rename(Path(scratch) / "image", place)
        _drop_old(place)
    os.utime(place)
    return Image(place / "vmlinuz", place / "initrd")


def newest_kernel() -> tuple[str, str]:
    """(package, version) of the kernel that Debian's package for the newest one points at."""
    about = _output("apt-cache", "show", "--no-all-versions", PACKAGE)
    found = re.search(r"^Depends: .*?(linux-image-[^\s,]+) \(= ([^)]+)\)", about, re.MULTILINE)
    if not found:
        raise LabError(f"apt knows no kernel behind {PACKAGE}: the lab PC needs Debian's packages, for x86-64")
    return found[1], found[2]


def _output(*command: str, folder: Path | None = None) -> str:
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        from_apt = command[0].startswith("apt")
        help_ = " (if it knows no package: sudo apt-get update)" if from_apt else ""
        raise (ToolsMissing if from_apt else LabError)(f"`{' '.join(command)}` failed: {last}{help_}")
    return done.stdout


def _make(package: str, busybox: bytes, scratch: Path, say: Callable[[str], None]) -> None:
    """Download, unpack, pick, pack; the result is the folder `image` in `scratch`."""
    say(f"lab: downloading {package} (about 70 MB) ...")
    as_root = ("-o", "APT::Sandbox::User=root") if os.geteuid() == 0 else ()  # apt's own user can not write here
    _output("apt-get", *as_root, "download", package, folder=scratch)
    say("lab: unpacking the kernel ...")
    (deb,) = scratch.glob("*.deb")
    _output("dpkg-deb", "-x", str(deb), str(scratch / "tree"))
    found = {_plain(path): path for path in (scratch / "tree").rglob("*.ko*")}
    modules = {name: read_module(found[name]) for name in in_order(MODULES, found)}
    image = scratch / "image"
    image.mkdir()
    (kernel,) = (scratch / "tree" / "boot").glob("vmlinuz-*")
    shutil.copy(kernel, image / "vmlinuz")
    (image / "initrd").write_bytes(gzip.compress(pack(_files(modules, busybox)), 1))
    say(f"lab: built {kernel.name} with {len(modules)} modules")


def _plain(path: Path) -> str:
    """The name of a module in a file: `hid-generic.ko.xz` is hid_generic."""
    return path.name.partition(".")[0].replace("-", "_")


def read_module(path: Path) -> bytes:
    """A module's code, decompressed."""
    if path.suffix == ".ko":
        return path.read_bytes()
    if path.suffix == ".xz":
        return lzma.decompress(path.read_bytes())
    raise LabError(f"{path.name}: the lab PC reads .ko and .ko.xz, not {path.suffix}")


def in_order(wanted: Iterable[str], found: dict[str, Path]) -> list[str]:
    """The modules with all that they depend on, each after what it needs."""
    order: list[str] = []

    def add(name: str) -> None:
        if name in order:
            return
        if name not in found:
            raise LabError(f"the kernel has no module {name}")
        needs = re.search(rb"\0depends=([^\0]*)\0", b"\0" + read_module(found[name]))
        for other in (needs[1].decode() if needs else "").split(","):
            if other:
                add(other.replace("-", "_"))
        order.append(name)

    for name in wanted:
        add(name)
    return order


def _files(modules: dict[str, bytes], busybox: bytes) -> dict[str, bytes | None]:
    """What the kernel finds at its start: paths and contents, None for a folder."""
    folders = ("bin", "dev", "proc", "sys", "host", "written", "lab", "modules")
    return {
        **dict.fromkeys(folders, None),
        "init": INIT.read_bytes(),
        "bin/busybox": busybox,
        "modules/order": "".join(f"{name}.ko {OPTIONS.get(name, '')}\n" for name in modules).encode(),
        **{f"modules/{name}.ko": code for name, code in modules.items()},
    }


def pack(files: dict[str, bytes | None]) -> bytes:
    """A cpio archive in the format "newc", all of it executable and root's. Ref: cpio(5)."""
    parts = []
    for number, (path, content) in enumerate([*files.items(), ("TRAILER!!!", b"")], 1):
        data = content or b""
        mode = 0o040755 if content is None else 0o100755
        fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(path) + 1, 0)
        head = b"070701" + "".join(f"{value:08X}" for value in fields).encode() + path.encode() + b"\0"
        parts += [head, b"\0" * (-len(head) % 4), data, b"\0" * (-len(data) % 4)]
    return b"".join(parts)


def _drop_old(newest: Path) -> None:
    others = [d for d in newest.parent.glob("linux-image-*") if d != newest]
    for old in sorted(others, key=lambda d: d.stat().st_mtime)[: -(KEEP - 1)]:
        shutil.rmtree(old, ignore_errors=True)

"""What is shipped of the page: it is in the wheel, and it was built from the sources that are here."""

import hashlib
import os
import zipfile
from pathlib import Path

import pytest

from bridge.web.files import Files

TOP = Path(__file__).resolve().parents[3]
WEB = TOP / "bridge" / "web"
BUILT_FROM = ("index.html", "package-lock.json", "package.json", "vite.config.js", "public", "src")


def digest_of_sources() -> str:
    """The same as in bridge/web/page/vite.config.js: every file by its name and its bytes, in the order of names."""
    page = WEB / "page"
    files = [f for name in BUILT_FROM for f in ([page / name] if (page / name).is_file() else (page / name).rglob("*"))]
    found = hashlib.sha256()
    for path in sorted((f for f in files if f.is_file()), key=lambda f: f.relative_to(page).as_posix().encode()):
        found.update(path.relative_to(page).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()


def test_the_page_was_built_from_these_sources() -> None:
    built = (WEB / "static" / "sources.sha256").read_text().strip()
    assert built == digest_of_sources(), (
        "bridge/web/static is not what bridge/web/page makes: run make web and commit it"
    )


def test_the_wheel_carries_the_page_and_not_its_sources(tmp_path: Path) -> None:
    if os.environ.get("CI") != "true":
        pytest.importorskip("hatchling", reason="hatchling builds the wheel: pip install -e '.[dev]'")
    from hatchling.builders.wheel import WheelBuilder

    (wheel,) = WheelBuilder(str(TOP)).build(directory=str(tmp_path), versions=["standard"])
    with zipfile.ZipFile(wheel) as made:
        made.extractall(tmp_path / "installed")
    shipped = tmp_path / "installed" / "bridge" / "web"
    here = {f.relative_to(WEB): f.read_bytes() for f in (WEB / "static").rglob("*") if f.is_file()}
    there = {f.relative_to(shipped): f.read_bytes() for f in (shipped / "static").rglob("*") if f.is_file()}
    assert there == here
    assert not (shipped / "page").exists()
    files = Files(shipped / "static")
    assert files.complete
    index = (shipped / "static" / "index.html").read_text()
    for name in [word.split('"')[0] for word in index.split('="/')[1:]]:
        assert files.answer(f"/{name}", "").status_code == 200, name

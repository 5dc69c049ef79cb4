"""Every block of the documentation runs, every link leads somewhere, and every page can be found."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from doc_blocks import GENERATED, PAGES, TOP, VECTORS, VERBS, Bench, blocks_of, commands_of, pattern_of, prose_of

from bridge.ecu.lane import warm_up
from bridge.protocol.waiting import await_rows, now
from hilnode.shared.lockfree.ring import Ring

WRITTEN = [page for page in PAGES if page != GENERATED]
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


@pytest.fixture(scope="module")
def warm() -> None:
    """Compile what the bridge compiles at its very first start, lest a short run be over before it speaks."""
    ring = Ring.create(f"docs-warm-{os.getpid()}", capacity=16, width=1)
    ring.reader(batch=1).read()
    await_rows(ring.view, 0, 0, 0, 1)
    now()
    ring.close()
    warm_up()


@pytest.mark.usefixtures("warm")
@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.stem)
def test_every_block_does_what_the_page_says(page: Path, tmp_path: Path) -> None:
    Bench(tmp_path, page).work(blocks_of(page))


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.stem)
def test_no_block_escapes_the_test(page: Path) -> None:
    for block in blocks_of(page):
        known = block.info in VERBS or block.info.split(" ")[0] in VECTORS
        assert known, f"{block.place}: info string {block.info!r} is none of {', '.join(VERBS + VECTORS)}"


def _anchors(page: Path) -> set[str]:
    """Headings as GitHub links to them."""
    headings = re.findall(r"^#+ (.+)$", prose_of(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


def _links(page: Path) -> list[str]:
    return [target for target in LINK.findall(prose_of(page)) if "://" not in target]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    for link in _links(page):
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        assert target.exists(), f"{page.name} links to {link}, which does not exist"
        assert target.is_relative_to(TOP), f"{page.name} links to {link}, outside this repository"
        if anchor:
            assert anchor in _anchors(target), f"{page.name} links to {link}: {sorted(_anchors(target))}"


def test_every_page_is_reachable_from_the_readme() -> None:
    todo, found = [TOP / "README.md"], set()
    while todo:
        page = todo.pop()
        if page in found:
            continue
        found.add(page)
        linked = ((page.parent / link.partition("#")[0]).resolve() for link in _links(page))
        todo += [target for target in linked if target.suffix == ".md"]
    assert found == set(PAGES)


def test_pictures_are_small_and_shown() -> None:
    shown = {(page.parent / link).resolve() for page in PAGES for link in _links(page) if link.endswith(".png")}
    assert shown == set((TOP / "docs" / "images").iterdir())
    assert all(picture.stat().st_size < 200_000 for picture in shown)


def test_shown_output_may_differ_in_numbers_only() -> None:
    shown = pattern_of("1000 ticks, 0 overruns, wake p99 111 us. More: runs/bench-20261116-064521")
    assert shown.search("so: 983 ticks, 12 overruns, wake p99 9 us. More: runs/bench-20270101-000000")
    assert not shown.search("1000 ticks, 0 overruns, step p99 111 us. More: runs/bench-20261116-064521")
    assert not shown.search("1000 ticks, no overruns, wake p99 111 us. More: runs/bench-20261116-064521")


def test_commands_and_output_are_told_apart() -> None:
    commands, shown = commands_of("$ sed 's/a/b/' \\\n>   file\nfirst\n...\n$ true\nlast\n")
    assert commands == ["sed 's/a/b/' \\\n  file", "true"]
    assert shown == ["first", "last"]


def test_a_plant_outside_a_node_is_compiled_into_the_one_cache(tmp_path: Path) -> None:
    step = "@step_function\ndef step(self, n, params, inputs, outputs, poses):\n    return OK\n"
    (tmp_path / "tiny_plant.py").write_text(f"from plant.abi import OK, step_function\n\n{step}")
    subprocess.run([sys.executable, "-c", "import tiny_plant"], cwd=tmp_path, check=True)
    assert not list(tmp_path.rglob("*.nbi"))


@pytest.mark.parametrize(
    ("info", "text"),
    [
        ("python run", "raise SystemExit(1)\n"),
        ("toml check", "[node]\nrate_hz = -3.0\n"),
        ("console", "$ false\n"),
        ("console", "$ false\n$ true\n"),
        ("console", "$ echo one\ntwo\n"),
        ("console loose", "$ false\n"),
        ("sh", "for x in\n"),
    ],
)
def test_a_wrong_block_is_noticed(info: str, text: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# A page\n\n```{info}\n{text}```\n")
    bench = Bench(tmp_path, page)
    with pytest.raises(AssertionError, match=r"page\.md:3: "):
        bench.work(blocks_of(page))

"""The table of kinds: built in, from another package, or named directly."""

from __future__ import annotations

import collections
import fractions
import sys
from pathlib import Path

import pytest

from hilnode.core.registry import KindError, Kinds

GROUP = "hilnode.test_kinds"
BUILT_IN = {
    "queue": "collections:deque",
    "counter": "collections:Counter",
    "broken": "no_such_module_anywhere:Thing",
    "lacking": "collections:no_such_thing",
}


@pytest.fixture
def kinds() -> Kinds:
    return Kinds("driver", GROUP, BUILT_IN)


@pytest.fixture
def other_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed distribution that adds kinds under our group and under another one."""
    info = tmp_path / "lab_kinds-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: lab-kinds\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        f"[{GROUP}]\nratio = fractions:Fraction\nqueue = fractions:Fraction\n\n[other.group]\nhidden = fractions:gcd\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))


def test_a_built_in_kind(kinds: Kinds) -> None:
    assert kinds.load("queue") is collections.deque
    assert kinds.table() == BUILT_IN


@pytest.mark.usefixtures("other_package")
def test_a_kind_of_another_package(kinds: Kinds) -> None:
    assert kinds.load("ratio") is fractions.Fraction
    assert kinds.table() == {**BUILT_IN, "ratio": "fractions:Fraction"}
    with pytest.raises(KindError, match="'hidden' is not known"):
        kinds.load("hidden")


@pytest.mark.usefixtures("other_package")
def test_another_package_does_not_replace_a_built_in_kind(kinds: Kinds) -> None:
    assert kinds.load("queue") is collections.deque
    assert kinds.table()["queue"] == "collections:deque"


def test_a_module_and_attribute_named_directly(kinds: Kinds) -> None:
    assert kinds.load("fractions:Fraction") is fractions.Fraction


def test_naming_one_kind_loads_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("lazy_kind_one", "lazy_kind_two"):
        (tmp_path / f"{name}.py").write_text("thing = __name__\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    kinds = Kinds("plant", GROUP, {"one": "lazy_kind_one:thing", "two": "lazy_kind_two:thing"})
    assert kinds.load("one") == "lazy_kind_one"
    assert "lazy_kind_two" not in sys.modules


def test_the_table_given_is_not_shared(kinds: Kinds) -> None:
    given = {"queue": "collections:deque"}
    kinds = Kinds("driver", GROUP, given)
    given["queue"] = "collections:Counter"
    kinds.table()["queue"] = "collections:Counter"
    assert kinds.load("queue") is collections.deque


def test_a_typing_error_gets_a_suggestion(kinds: Kinds) -> None:
    with pytest.raises(KindError) as caught:
        kinds.load("quue")
    assert str(caught.value) == "driver kind 'quue' is not known: did you mean 'queue'?"


@pytest.mark.usefixtures("other_package")
def test_a_word_like_none_of_them_lists_them_all(kinds: Kinds) -> None:
    with pytest.raises(KindError) as caught:
        kinds.load("zzz")
    assert str(caught.value).endswith("known: broken, counter, lacking, queue, ratio")


@pytest.mark.parametrize(
    ("kind", "target", "why"),
    [
        ("broken", "no_such_module_anywhere:Thing", "no_such_module_anywhere"),
        ("lacking", "collections:no_such_thing", "no_such_thing"),
        ("no_such_module:x", "no_such_module:x", "No module named"),
        ("collections:", "collections:", "attribute"),
        (":deque", ":deque", "module name"),
    ],
)
def test_what_cannot_be_loaded_says_what_and_why(kind: str, target: str, why: str, kinds: Kinds) -> None:
    with pytest.raises(KindError) as caught:
        kinds.load(kind)
    said = str(caught.value)
    assert said.startswith(f"driver kind {kind!r}: cannot load {target!r} (")
    assert why in said
    assert caught.value.__cause__ is not None

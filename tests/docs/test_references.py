"""Every author cited in code, tests and documentation is in docs/references.md."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest
from doc_blocks import TOP

REFERENCES = TOP / "docs" / "references.md"
_SURNAME = r"(?:Mc|La|De)?[A-Z][a-zà-öø-ÿ]{2,}(?:-[A-Z][a-z]+)?"
_NAME = rf"(?:van (?:den )?|de )?{_SURNAME}"
_PLACE = (
    r"(?:\(?eqs?\. ?\d|tables? \d|sections? \d|chapters? \d|figures? \d|\(?(?:1[89]|20)\d\d\b"
    r"|\d+\.\d+(?:\.\d+)*\b(?! ?(?:m|s|ms|us|mm|um|%|N|kg|rad|Hz)\b))"
)
_NOUN = r"(?:rule|method|law|laws|friction|linkage|march|choice|formulas?|family|projection|apparatus|tire|squeezer)"
CITED = re.compile(
    rf"\b((?:{_NAME}, )*{_NAME}(?:,? and {_NAME})?),? {_PLACE}"  # Luaces eq. 4.30; Gilbert, Johnson, Keerthi 1988
    rf"|\b((?:{_NAME}, )*{_NAME} and {_NAME})(?='s\b|[;:).,]|$)"  # Bowden and Leben;
    rf"|\b(?:[A-Z]\. ?)+({_NAME})"  # H. B. Pacejka
    rf"|\b({_NAME})(?:'s|') {_NOUN}\b"  # Murty's rule
    rf"|(?<= )\(({_NAME})\)"  # (Neumaier)
    rf"|\b({_NAME} & {_NAME}|{_NAME}(?= et al\.| \[\d))"  # Anitescu & Potra; Baraff et al.; Moreau [3]
    rf"|(?:Ref: |[(;] ?)((?:{_NAME}, )+)(?=[A-Z\"])"  # Ref: Goldsmith, Salmon, Automatic ...
)
SURNAME = re.compile(_SURNAME)
NO_AUTHORS = {"None", "Debian", "Ubuntu", "From", "Nothing", "What", "Intel", "Section", "Python", "Adding", "Recipes"}
"""Words that look like a citation where they stand."""


def prose_of_source(file: Path) -> Iterator[str]:
    """Comments and docstrings of a source file, or a page as a whole; lines joined, since citations wrap."""
    text = file.read_text("utf-8")
    if file.suffix != ".py":
        yield re.sub(r"\s*\n\s*(?:# ?)?", " ", text)
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT or (
            token.type == tokenize.STRING and token.string.startswith(('"""', 'r"""'))
        ):
            yield re.sub(r"\s*\n\s*(?:# ?)?", " ", token.string)


def authors_in(text: str) -> set[str]:
    return {
        name
        for match in CITED.finditer(text)
        for name in SURNAME.findall(next(group for group in match.groups() if group))
    } - NO_AUTHORS


def sources() -> list[Path]:
    folders = ("plant", "hilnode", "drivers", "bridge", "tests", "tools", "docs", "configs")
    files = (f for folder in folders for f in (TOP / folder).rglob("*") if f.suffix in {".py", ".md", ".toml"})
    return [f for f in files if "node_modules" not in f.parts and f != Path(__file__).resolve()]


def test_every_cited_author_is_in_the_references() -> None:
    known = set(SURNAME.findall(REFERENCES.read_text("utf-8")))
    cited = {(name, file) for file in sources() for text in prose_of_source(file) for name in authors_in(text)}
    assert len({name for name, _ in cited}) > 80
    missing = sorted(f"{name} ({file.relative_to(TOP)})" for name, file in cited if name not in known)
    assert missing == []


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("as in Luaces eq. 4.30", {"Luaces"}),
        ("Ref: Gilbert, Johnson, Keerthi 1988", {"Gilbert", "Johnson", "Keerthi"}),
        ("block pivoting (Judice and Pires)", {"Judice", "Pires"}),
        ("Murty's rule", {"Murty"}),
        ("Baraff et al. have it", {"Baraff"}),
        ("after Moreau [3]", {"Moreau"}),
        ("Anitescu & Potra", {"Anitescu", "Potra"}),
        ("McKenna 1998", {"McKenna"}),
        ("Möller 1997", {"Möller"}),
        ("a Box of 1988 N", set()),
    ],
)
def test_citations_are_found(text: str, names: set[str]) -> None:
    assert authors_in(text) == names

"""A configuration file: read, parsed, and the line of every key found.

A parser gives the values; the person with the file open wants the line. So this file holds a reader for text files
and one for TOML that fail in sentences, and a scanner that finds the line of every key in a TOML text.
"""

from __future__ import annotations

import bisect
import functools
import os
import re
import stat
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hilnode.core.problems import ConfigError, Loc, Problem, dotted, printable, sentence, shown
from hilnode.core.signals import nearest

DEEPEST = 32
"""Levels of nested tables. The standard TOML reader needs quadratic time for a key of many dotted parts."""


@dataclass(frozen=True)
class Source:
    """Where a configuration came from, to say of each key what was written and on which line.

    Two sources compare equal: a configuration is what it says, not where it lay.
    """

    file: str = field(default="configuration", compare=False)
    folder: Path = field(default=Path(), compare=False)
    text: str = field(default="", compare=False)
    document: Mapping[str, Any] = field(default_factory=dict, compare=False)
    overrides: Mapping[Loc, Any] = field(default_factory=dict, compare=False)

    @functools.cached_property
    def lines(self) -> dict[Loc, int]:
        return locate(self.text)

    def problem(self, loc: Loc, message: str, hint: str = "") -> Problem:
        """A problem at `loc`: its line, or that of the nearest table around it, unless an override put it there."""
        file, line, rest = self.file, None, loc
        found: Any = self.document
        if over := next((loc[:n] for n in range(len(loc), 0, -1) if loc[:n] in self.overrides), None):
            file, found, rest = "override", self.overrides[over], loc[len(over) :]
        elif around := next((loc[:n] for n in range(len(loc), 0, -1) if loc[:n] in self.lines), None):
            line = self.lines[around]
        try:
            value = functools.reduce(lambda holder, part: holder[part], rest, found)
        except (KeyError, IndexError, TypeError):  # nothing was written there
            return Problem(file, dotted(loc), line, message, hint)
        about_table = isinstance(value, Mapping) and not message.startswith("must be")
        return Problem(file, dotted(loc), line, message, hint, "" if about_table else shown(value))


def read_text(path: str | os.PathLike[str], limit: int) -> str:
    """The text of a file, line ends as `\\n`; a ConfigError with one sentence for whatever prevents it."""
    name = os.fsdecode(path)
    file = printable(name)

    def refuse(message: str, hint: str = "", line: int | None = None) -> ConfigError:
        return ConfigError([Problem(file, "", line, message, hint)])

    too_big = refuse(f"larger than {limit / 1e6:.0f} MB, which is no file of this kind")
    try:
        info = os.stat(name)
        if stat.S_ISDIR(info.st_mode):
            raise refuse("is a folder, not a file", "Name the file within it.")
        if not stat.S_ISREG(info.st_mode):
            raise refuse("is a device, pipe or socket, not a file")
        if info.st_size > limit:
            raise too_big
        with open(name, "rb") as stream:
            data = stream.read(limit + 1)
    except FileNotFoundError as error:
        raise refuse("there is no such file", _beside(Path(name))) from error
    except (OSError, ValueError) as error:
        if isinstance(error, ConfigError):
            raise
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise refuse(f"cannot be read ({printable(why).lower()})") from error
    if len(data) > limit:
        raise too_big
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        what = "a binary file" if b"\0" in data[:8192] else f"not UTF-8 text (byte 0x{data[error.start]:02x})"
        line = data.count(b"\n", 0, error.start) + 1
        raise refuse(f"{what}, so it cannot be read", "Save it as UTF-8 text.", line) from error


def _beside(path: Path) -> str:
    """A hint from the files that are there."""
    try:
        names = [printable(p.name) for p in path.parent.iterdir() if p.suffix == path.suffix]
    except (OSError, ValueError):
        return "Its folder does not exist or cannot be read."
    return sentence(nearest(path.name[:80], names)) if names else ""


TOML_WORDS = (
    ("Invalid value", "this is no value", 'Text needs quotes, as in pace = "free"; true and false are lower case.'),
    ("Invalid date", "there is no such date or time", ""),
    ("Cannot overwrite|Duplicate inline", "this key is given twice", "Keep one of them."),
    ("Cannot declare .* twice", "this table is given twice", "Put all its keys under one heading."),
    ("Cannot mutate|Cannot redefine", "this table or list was closed further up", "Put all its keys in one place."),
    ("Expected '=' after", "a key must be followed by = and a value", "Names holding dots or spaces need quotes."),
    ("Invalid statement", "a line must be a [table], a key = value or a # comment", ""),
    ("key part", "a key must stand here", "A key is letters, digits, - and _, or text in quotes."),
    (
        "Expected newline",
        "something stands after the end of the value or heading",
        "Begin a new line for the next key.",
    ),
    (r"(Illegal|invalid) character '\\n'|Unterminated|Expected \"'", "a quote is not closed", ""),
    (r"Illegal|invalid character", "a control character may not stand here", "Delete it."),
    (r"Unclosed|Expected '\]", "a bracket is not closed", ""),
    (
        "Unescaped|Escaped|hex value",
        "a backslash in double quotes begins an escape",
        "Use 'single quotes' or write \\\\.",
    ),
)
"""What the TOML reader says, in words that help."""


def parse_toml(text: str, file: str) -> dict[str, Any]:
    """The document, or a ConfigError with line, column and the line itself."""
    part = r"""(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+"""
    if deep := re.search(rf"(?<![A-Za-z0-9_-])(?:{part}){{{DEEPEST}}}", text):
        line = text.count("\n", 0, deep.start()) + 1
        raise ConfigError([Problem(file, "", line, f"a name of more than {DEEPEST} parts joined by dots")])
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError([_syntax(str(error), text, file)]) from error
    except RecursionError as error:
        raise ConfigError([Problem(file, "", None, "lists or tables are nested too deeply to be read")]) from error
    except ValueError as error:  # from int(), which refuses thousands of digits
        raise ConfigError([Problem(file, "", None, "a number has too many digits to be read")]) from error


def _syntax(said: str, text: str, file: str) -> Problem:
    """A syntax error as a problem that shows the spot."""
    rows = text.rstrip("\n").split("\n")
    at = re.search(r"\(at line (\d+), column (\d+)\)", said)
    line, column = (int(at[1]), int(at[2])) if at else (len(rows), len(rows[-1]) + 1)
    message, hint = next(((m, h) for pattern, m, h in TOML_WORDS if re.search(pattern, said)), ("cannot be read", ""))
    row = rows[line - 1] if line <= len(rows) else ""
    start = max(0, column - 60)
    excerpt = printable(row[start : start + 100])
    caret = " " * len(printable(row[start : column - 1]))
    return Problem(
        file, "", line, f"column {column}: not valid TOML: {message}", f"{hint}\n    {excerpt}\n    {caret}^"
    )


_SPACE = re.compile(r"(?:[ \t\r\n]++|#[^\n]*+)*+")
_KEY = re.compile(r"""[ \t]*+("(?:[^"\\\n]|\\.)*+"|'[^'\n]*+'|[A-Za-z0-9_-]++)[ \t]*+(\.?)""")
_SCALAR = re.compile(
    r'''"""[^"\\]*+(?:(?:\\.|"(?!""))[^"\\]*+)*+"{3,5}|\'\'\'[^']*+(?:'(?!'')[^']*+)*+'{3,5}'''
    r"""|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+'|[^,\]}#\n]++""",
    re.DOTALL,
)


def locate(text: str) -> dict[Loc, int]:
    """The line of every table, key and list element in a text that is known to be valid TOML."""
    scan = _Scanner(text)
    scan.document()
    return scan.lines


class _Scanner:
    """Walks a TOML text once, keeping where it is and which table it is in."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.lines: dict[Loc, int] = {}
        self.breaks = [m.start() for m in re.finditer("\n", text)]
        self.counts: Counter[Loc] = Counter()

    def note(self, loc: Loc) -> None:
        self.lines.setdefault(loc, bisect.bisect_left(self.breaks, self.at) + 1)

    def skip(self, count: int = 0) -> str:
        """Pass `count` characters, then spaces and comments; the next character."""
        self.at = _SPACE.match(self.text, self.at + count).end()  # type: ignore[union-attr]
        return self.text[self.at : self.at + 1]

    def key(self) -> Iterator[str]:
        more = "."
        while more and (found := _KEY.match(self.text, self.at)):
            word, more = found.groups()
            yield tomllib.loads(f"key = {word}")["key"] if word[0] in "\"'" else word
            self.at = found.end()

    def document(self) -> None:
        table: Loc = ()
        while char := self.skip():
            if char == "[":
                table = self.heading()
            else:
                self.pair(table)

    def heading(self) -> Loc:
        double = self.text.startswith("[[", self.at)
        self.at += 1 + double
        loc: Loc = ()
        for part in list(self.key()):
            if self.counts[loc]:  # a list of tables: what follows belongs to its last one
                loc += (self.counts[loc] - 1,)
            loc += (part,)
            self.note(loc)
        if double:
            self.counts[loc] += 1
            loc += (self.counts[loc] - 1,)
            self.note(loc)
        self.at += 1 + double
        return loc

    def pair(self, table: Loc) -> None:
        loc = table
        for part in self.key():
            loc += (part,)
            self.note(loc)
        self.skip(1)  # the equals sign
        self.value(loc)

    def value(self, loc: Loc) -> None:
        opened = self.text[self.at : self.at + 1]
        if opened not in "[{":
            self.at = _SCALAR.match(self.text, self.at).end()  # type: ignore[union-attr]
            return
        index = 0
        char = self.skip(1)
        while char not in "]}":
            if opened == "[":
                self.note((*loc, index))
                self.value((*loc, index))
                index += 1
            else:
                self.pair(loc)
            char = self.skip()
            if char == ",":
                char = self.skip(1)
        self.at += 1

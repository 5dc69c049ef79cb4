"""Error messages about a configuration: which file, line and key, the value given, and the fix.

A validator speaks of types and locations; here every error pydantic can raise becomes a sentence for the person with
the file open. What was written in the file and on which line, `hilnode.core.toml_source` knows.
"""

from __future__ import annotations

import json
import re
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from hilnode.core.signals import nearest

Loc = tuple[str | int, ...]
"""Where a value stands in the document: keys, and indices within lists."""

MOST = 100
"""Problems written out at most; a file with more has one cause, and the count says the rest."""

PATTERNS = {
    r"^[a-z][a-z0-9-]*$": "must be lower-case letters, digits and dashes, beginning with a letter",
    r"^[a-z][a-z0-9_]*$": "must be lower-case letters, digits and underscores, beginning with a letter",
    r"^([a-z][a-z0-9_-]*|[A-Za-z_][A-Za-z0-9_.]*:[A-Za-z_][A-Za-z0-9_]*)$": "must be the name of a kind in lower case, "
    "or module:attribute",
    r"^[a-z][a-z0-9_]*(\.[a-z0-9][a-z0-9_]*)*$": "must be lower-case words joined by dots, such as 'arm.elbow.angle'",
    r"^[a-z][a-z0-9_]*(\.[a-z0-9][a-z0-9_]*)+$": "must be a driver and its channel joined by a dot, such as 'stick.x'",
    r"^(tcp://(\[[0-9a-fA-F:.]+\]|[^\s:/\[\]]+):[0-9]{1,5}|ipc://[^\s\x00]+)$": "must be an address such as "
    "'tcp://127.0.0.1:9872' or 'ipc:///tmp/hilnode'",
    r"^http://(\[[0-9a-fA-F:.]+\]|[^\s:/\[\]]+):[0-9]{1,5}$": "must be an address such as 'http://127.0.0.1:8080'",
    r"^[A-Za-z0-9_~.-]{16,200}$": "must be 16 to 200 letters, digits, - . _ or ~",
    r"^[^\x00-\x1f\x7f]+$": "must be text without control characters",
}
"""Every pattern the models use, and what it asks for in words."""

NODE_NAME, DRIVER_NAME, KIND_NAME, SIGNAL_NAME, CHANNEL_NAME, ADDRESS, WEB_ADDRESS, TOKEN, PLAIN_TEXT = PATTERNS


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong, and how to fix it."""

    where_file: str
    key: str
    line: int | None
    message: str
    hint: str = ""
    value: str = ""

    def __str__(self) -> str:
        where = self.where_file if self.line is None else f"{self.where_file}:{self.line}"
        what = f"{self.key} = {self.value}" if self.key and self.value else self.key
        text = ": ".join(part for part in (where, what, self.message) if part) + "."
        return text + ("" if self.hint.startswith("\n") else " ") + self.hint if self.hint else text


AtPlace = Callable[[Loc, str, str], Problem]
"""Makes a problem of a location, a message and a hint: it knows the file, the line and what was written there."""


class ConfigError(ValueError):
    """Everything wrong with a configuration at once: `problems`, of which `more` were not written out."""

    def __init__(self, problems: list[Problem], more: int = 0) -> None:
        self.problems = problems
        self.more = more
        super().__init__(problems, more)

    def __str__(self) -> str:
        tail = [f"{self.problems[0].where_file}: and {self.more} more problems."] if self.more else []
        return "\n\n".join([*map(str, self.problems), *tail])


def printable(text: str, most: int = 200) -> str:
    """Text that any terminal can show: escapes for what cannot be printed, and an end."""
    cut = text if len(text) <= most else text[: most - 3] + "..."
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut)


def number(value: float) -> str:
    """A number as one would write it: 1000 rather than 1000.0."""
    return str(int(value)) if abs(value) < 1e15 and value == int(value) else repr(value)


def shown(value: Any, depth: int = 0) -> str:
    """A value as it would stand in the file, shortened."""
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value) if value.bit_length() < 128 else f"(a number of {value.bit_length()} bits)"
        case float():
            return number(value)
        case str():
            return printable(json.dumps(value[:80], ensure_ascii=False), 60)
        case list() | tuple():
            if depth > 1:
                return "[...]"
            return (
                "[" + ", ".join([*(shown(v, depth + 1) for v in value[:4]), *(["..."] if len(value) > 4 else [])]) + "]"
            )
        case Mapping() | BaseModel():
            return "{ ... }"
        case _:
            return printable(str(value), 60)


def dotted(loc: Loc) -> str:
    """A location as one would write it: `signals.inputs."arm.torque".scale`, `safety.alarms[0].above`."""
    text = ""
    for part in loc:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            plain = re.fullmatch(r"[A-Za-z0-9_-]{1,60}", part)
            text += ("." if text else "") + (
                part if plain else printable(json.dumps(part[:80], ensure_ascii=False), 60)
            )
    return text


def sentence(text: str) -> str:
    """A hint as a sentence of its own."""
    return text and text[:1].upper() + text[1:] + ("" if text.endswith(("?", ".")) else ".")


SENTENCES = {
    "greater_than": "must be greater than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "finite_number": "must be a finite number, not nan or inf",
    "float_type": "must be a number",
    "int_type": "must be a whole number",
    "bool_type": "must be true or false",
    "string_type": "must be text in quotes",
    "string_unicode": "must be valid Unicode text",
    "string_too_long": "must be at most {max_length} characters long",
    "string_too_short": "must not be empty",
    "model_type": "must be a table",
    "model_attributes_type": "must be a table",
    "dict_type": "must be a table",
    "tuple_type": "must be a list",
    "missing": "is missing",
}
"""Validation errors in plain words; what is not here is said by the models themselves."""


def explain(error: ValidationError, root: type[BaseModel], problem: AtPlace) -> ConfigError:
    """Every validation error as a problem, in the order of the file."""
    errors = error.errors(include_url=False)
    problems = list(dict.fromkeys(_translate(e, root, problem) for e in errors[:MOST]))
    problems.sort(key=lambda p: p.line or 0)
    return ConfigError(problems, max(0, len(errors) - MOST))


def _translate(error: Any, root: type[BaseModel], problem: AtPlace) -> Problem:
    kind, given, context, loc = error["type"], error["input"], error.get("ctx", {}), error["loc"]
    if loc and loc[-1] == "[key]" and get_origin(_bare(_trace(root, loc[:-2]).kind)) is dict:
        words = PATTERNS.get(context.get("pattern", ""), SENTENCES.get(kind, "is not allowed"))
        return problem(_trace(root, loc[:-1]).loc, f"its name {_filled(words, context)}", "")
    spot = _trace(root, (*loc, *context.get("at", ())))
    hint = spot.suggestion()
    if kind == "extra_forbidden":
        return problem(spot.loc, f"is not a key of {spot.table()}", _unknown(str(spot.loc[-1]), spot.owner, root))
    if kind == "union_tag_not_found":
        return problem((*spot.loc, "kind"), "is missing", f"Allowed are {_listed(spot.tags())}.")
    if kind == "union_tag_invalid":
        return _choice((*spot.loc, "kind"), context["tag"], spot.tags(), "", problem)
    if kind == "literal_error":
        return _choice(spot.loc, given, re.findall(r"'([^']*)'", context["expected"]), hint, problem)
    if kind == "string_pattern_mismatch":
        message = PATTERNS[context["pattern"]]
    elif kind == "value_error":
        message = str(context["error"])
    elif kind == "float_type" and isinstance(given, int) and not isinstance(given, bool):
        message = "is too large a number"
    else:
        message = _filled(SENTENCES[kind], context) if kind in SENTENCES else error["msg"]
    if message in ("must be a table", "must be a list"):
        hint = spot.heading() or hint
    return problem(spot.loc, message, hint.replace("Try", "Add") if kind == "missing" else hint)


def _choice(loc: Loc, given: Any, allowed: list[str], hint: str, problem: AtPlace) -> Problem:
    """A word that is none of those allowed."""
    close = nearest(given[:80], allowed) if isinstance(given, str) else ""
    return problem(loc, f"must be {_listed(allowed)}", sentence(close) if "did you mean" in close else hint)


def _filled(words: str, context: Mapping[str, Any]) -> str:
    numbers = {k: number(v) for k, v in context.items() if isinstance(v, int | float)}
    return words.format_map(numbers) if "{" in words and numbers else words


def _listed(words: list[str]) -> str:
    quoted = [f'"{w}"' for w in words]
    return " or ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)


def _unknown(key: str, owner: type[BaseModel], root: type[BaseModel]) -> str:
    """Where an unknown key may belong."""
    known = keys(owner)
    for table, info in root.model_fields.items():
        if key not in known and isinstance(info.annotation, type) and key in keys(info.annotation):
            return f"It belongs in [{table}]."
    return sentence(nearest(key[:80], list(known)))


def keys(model: type) -> dict[str, FieldInfo]:
    """The keys of a table as they stand in the file."""
    if not issubclass(model, BaseModel):
        return {}
    return {info.alias or name: info for name, info in model.model_fields.items()}


@dataclass
class _Spot:
    """A location in the document beside the model that describes it."""

    loc: Loc
    owner: type[BaseModel]
    info: FieldInfo | None
    kind: Any

    def suggestion(self) -> str:
        if self.info is None or not self.loc or isinstance(self.loc[-1], int):
            return ""
        value = self.info.examples[0] if self.info.examples else self.info.default
        simple = isinstance(value, str | int | float | list)
        return f"Try {dotted(self.loc[-1:])} = {shown(value)}." if simple else ""

    def table(self) -> str:
        """The table that holds the last key."""
        inner = self.loc[:-1]
        if not inner:
            return "the configuration"
        return f"[[{dotted(inner[:-1])}]]" if isinstance(inner[-1], int) else f"[{dotted(inner)}]"

    def tags(self) -> list[str]:
        return [t for member in get_args(_bare(self.kind)) for t in get_args(member.model_fields["kind"].annotation)]

    def heading(self) -> str:
        """How to write what should be a table, or a list of them."""
        if get_origin(self.kind) is tuple:
            return f"Write [[{dotted(self.loc)}]], with two brackets, above its keys."
        if self.loc and isinstance(self.loc[-1], int):
            return f"Write [[{dotted(self.loc[:-1])}]] above its keys."
        return f"Write [{dotted(self.loc)}] above its keys."


def _bare(kind: Any) -> Any:
    """A type without `Annotated` and without `None`."""
    if get_origin(kind) is Annotated:
        return _bare(get_args(kind)[0])
    if get_origin(kind) in (Union, types.UnionType):
        members = [a for a in get_args(kind) if a is not type(None)]
        return _bare(members[0]) if len(members) == 1 else kind
    return kind


def _trace(root: type[BaseModel], loc: Loc) -> _Spot:
    """Follow a validator's location through the models; its names for members of a union are no part of the file."""
    spot = _Spot((), root, None, root)
    for part in loc:
        kind = _bare(spot.kind)
        origin = get_origin(kind)
        if isinstance(kind, type) and origin is None and issubclass(kind, BaseModel):
            info = keys(kind).get(str(part))
            spot = _Spot((*spot.loc, part), kind, info, info and info.annotation)
        elif origin is dict:
            spot = _Spot((*spot.loc, part), spot.owner, None, get_args(kind)[1])
        elif origin is tuple and isinstance(part, int):
            spot = _Spot((*spot.loc, part), spot.owner, None, get_args(kind)[0])
        elif origin in (Union, types.UnionType):
            spot.kind = next(m for m in get_args(kind) if part in get_args(keys(m)["kind"].annotation))
        else:  # within a free table
            spot = _Spot((*spot.loc, part), spot.owner, None, None)
    return spot

"""The configuration of a node: one TOML file, read once, checked whole, then frozen.

    load      file -> Config      every key known, typed and in range, or a ConfigError that lists all problems
    overlay   Config -> Config    what the command line changes, under the same checks

The tables and their keys are in `hilnode/config/tables/`, one file each. Whether the signals they name exist is the
next question: see `hilnode/config/wiring.py`. An empty file is valid: it runs the default plant with no devices.
`python -m hilnode.config` writes the JSON schema for editors.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import Field, PrivateAttr, ValidationError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from hilnode.config.tables.bridge import BridgeTable
from hilnode.config.tables.common import DriverName, Table
from hilnode.config.tables.driver import DriverTable
from hilnode.config.tables.fault import Fault
from hilnode.config.tables.log import LogTable
from hilnode.config.tables.node import NodeTable
from hilnode.config.tables.plant import PlantTable
from hilnode.config.tables.safety import SafetyTable
from hilnode.config.tables.signals import SignalsTable
from hilnode.config.tables.stimulus import Stimulus
from hilnode.config.tables.web import WebTable
from hilnode.core.problems import ConfigError, Problem, explain, keys, printable, sentence
from hilnode.core.signals import nearest
from hilnode.core.tables import FileTable
from hilnode.core.toml_source import Source, parse_toml, read_text

__all__ = ["Config", "ConfigError", "Problem", "load", "overlay", "schema"]


FILE_LIMIT = 4_000_000
"""Bytes of a configuration; a larger file was named by mistake."""


class Config(Table):
    """A whole configuration. Every table may be left out."""

    node: NodeTable = NodeTable()
    plant: PlantTable = PlantTable()
    drivers: dict[DriverName, DriverTable] = Field(default={})
    signals: SignalsTable = SignalsTable()
    safety: SafetyTable = SafetyTable()
    bridge: BridgeTable = BridgeTable()
    web: WebTable = WebTable()
    log: LogTable = LogTable()

    _source: Source = PrivateAttr(default_factory=Source)

    @property
    def source(self) -> Source:
        """The file it came from: its name, its folder, the line of every key."""
        return self._source


def _validated(document: Mapping[str, Any], source: Source) -> Config:
    try:
        config = Config.model_validate(document)
    except ValidationError as error:
        raise explain(error, Config, source.problem) from error
    config._source = source
    return config


def check_stimulus(table: dict[str, Any]) -> Stimulus:
    """One table of [[signals.stimulus]] by itself; ConfigError says what is wrong with it."""
    return _validated({"signals": {"stimulus": [table]}}, Source()).signals.stimulus[0]


def check_fault(table: dict[str, Any]) -> Fault:
    """One table of [[signals.faults]] by itself; ConfigError says what is wrong with it."""
    return _validated({"signals": {"faults": [table]}}, Source()).signals.faults[0]


def load(path: str | os.PathLike[str]) -> Config:
    """The configuration in a file; whatever is wrong with it, a ConfigError that lists all problems."""
    text = read_text(path, FILE_LIMIT)
    file = printable(os.fsdecode(path))
    document = parse_toml(text, file)
    source = Source(file, Path(path).parent, text, document)
    return _validated(_with_parameter_file(document, source.folder), source)


def _with_parameter_file(document: Mapping[str, Any], folder: Path) -> Mapping[str, Any]:
    """The same with the table itself where `plant.options.parameters` names a file that holds it.

    So the configuration says all that a run depends on, and a recording of it too.
    """
    plant = document.get("plant")
    options = plant.get("options") if isinstance(plant, Mapping) else None
    name = options.get("parameters") if isinstance(options, Mapping) else None
    if not isinstance(plant, Mapping) or not isinstance(options, Mapping) or not isinstance(name, str):
        return document
    table = FileTable(name, parse_toml(read_text(folder / name, FILE_LIMIT), printable(name)))
    return {**document, "plant": {**plant, "options": {**options, "parameters": table}}}


PLAIN_TABLES = ("node", "plant", "safety", "bridge", "log")
"""Tables that appear once; no key stands in two of them, so that an override needs only the key."""

NAMED_TABLES = ("web",)
"""Tables that appear once, whose keys stand in others too: an override names table and key."""


def _override_keys() -> dict[str, tuple[str, str]]:
    found = [(t, k) for t in PLAIN_TABLES for k in keys(type(getattr(Config(), t)))]
    named = [(t, k) for t in NAMED_TABLES for k in keys(type(getattr(Config(), t)))]
    return {k: (t, k) for t, k in found} | {f"{t}.{k}": (t, k) for t, k in (*found, *named)}


def overlay(config: Config, **changes: Any) -> Config:
    """The configuration with some keys changed, such as `rate_hz=500` or `**{"log.directory": "runs"}`.

    What the command line did not give is None and changes nothing.
    """
    known = _override_keys()
    tables: dict[str, Any] = {name: getattr(config, name) for name in Config.model_fields}
    overrides = dict(config.source.overrides)
    problems = []
    for name, value in changes.items():
        if value is None:
            continue
        if name not in known:
            alike = [k for k in known if ("." in k) == ("." in name)]
            hint = sentence(nearest(name[:80], alike))
            problems.append(Problem("override", printable(name), None, "is not a key", hint))
            continue
        table, key = known[name]
        if isinstance(tables[table], Table):
            old = tables[table]
            tables[table] = {name: getattr(old, name) for name in old.model_fields_set}
        tables[table][key] = os.fspath(value) if isinstance(value, os.PathLike) else value
        overrides[table, key] = tables[table][key]
    if problems:
        raise ConfigError(problems)
    return _validated(tables, replace(config.source, overrides=overrides))


class _Schema(GenerateJsonSchema):
    """TOML has no null: an optional key is left out."""

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        made = super().default_schema(schema)
        return {k: v for k, v in made.items() if k != "default" or v is not None}

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def schema() -> str:
    """The JSON schema that lets an editor complete and check a configuration."""
    made = Config.model_json_schema(by_alias=True, schema_generator=_Schema)
    return json.dumps({"$schema": _Schema.schema_dialect, **made}, indent=2) + "\n"


def main(arguments: Sequence[str]) -> int:
    """Write the schema to the file named, else into `configs/` of this checkout."""
    beside = Path(__file__).resolve().parents[2] / "configs" / "hilnode.schema.json"
    path = Path(arguments[0]) if arguments else beside
    try:
        path.write_text(schema(), encoding="utf-8")
    except OSError as error:
        print(
            f"{path}: cannot be written ({error.strerror}). Name a file: python -m hilnode.config FILE", file=sys.stderr
        )
        return 1
    print(f"wrote {path}")
    return 0

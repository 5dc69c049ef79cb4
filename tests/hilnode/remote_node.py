"""A node in a process of its own that does what standard input says: `python remote_node.py CONFIG FOLDER`.

Each line is a JSON list, the name of a method or property and its arguments; each answer is one JSON line.
"""

import json
import sys
from pathlib import Path
from typing import Any

from hilnode.config.config import load
from hilnode.node.node import Node
from hilnode.shared.control import Word


def do(node: Node, what: str, arguments: list[Any]) -> Any:
    """What `what` gives; a word of the control block by its upper-case name."""
    if what == "state":
        return node.state.name
    if what == "tripped":
        return node.tripped.sentence if node.tripped else None
    if what.isupper():
        return node.control[Word[what]]
    found = getattr(node, what)
    return found(*arguments) if callable(found) else found


def answer(node: Node, line: str) -> dict[str, Any]:
    what, *arguments = json.loads(line)
    try:
        return {"answer": do(node, what, arguments)}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def main() -> None:
    config, folder = sys.argv[1:]
    with Node(load(config), directory=Path(folder), say=lambda line: print(line, file=sys.stderr, flush=True)) as node:
        node.start()
        print(json.dumps({"answer": "started"}), flush=True)
        for line in sys.stdin:
            print(json.dumps(answer(node, line)), flush=True)


if __name__ == "__main__":
    main()

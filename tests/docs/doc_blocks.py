"""The fenced blocks of the documentation, and a bench on which they run.

What a block's info string says is what happens to it:

    python file     written under the name in its first line
    python run      written and run; it must exit with 0
    c file          written
    dbc file        written under the name that its version says
    toml file       written, for a block further down that runs it
    toml check      written; `hilnode check` must find it good
    toml data       written as it stands: it is no config, but one names it
    console         every line after `$ ` is run (`> ` continues it) and must exit with 0;
                    every other line must stand in what was printed, whatever its numbers
    console loose   run as well, but what was printed is not compared
    sh              only parsed: it needs root or installs something
    text            a picture, or output that cannot be had here
    hex, json       test vectors: see test_wire_vectors.py

Names of nodes and numbers of ports are exchanged for private ones, so that the blocks run beside anything else.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from pathlib import Path

from typer.testing import CliRunner

from hilnode.cli.main import app

TOP = Path(__file__).resolve().parents[2]
PAGES = [TOP / f"{name}.md" for name in ("README", "ARCHITECTURE", "CONTRIBUTING")]
PAGES += sorted((TOP / "docs").glob("*.md"))
GENERATED = TOP / "docs" / "config.md"  # by tools/config_docs.py, which has tests of its own
VERBS = (
    *("python file", "python run", "c file", "dbc file", "toml file", "toml check"),
    "toml data",
    *("console", "console loose", "sh", "text"),
)
VECTORS = ("hex", "json")

_FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r"""(?:# |/\* |VERSION ")([\w.]+\.(?:py|toml|c|dbc))\b""")
PATIENCE = 240
"""Seconds after which a block hangs: with an empty cache, a page may compile shapes of its own."""

_TIMES = ("us", "ms", "s")  # a time that is told is told in the unit that suits it
_NUMBER = re.compile(r"[-+]?\d[\d.,]*")
_NO_CONFIG = re.compile(r"\bhilnode (run|headroom)(?! \S+\.toml)")


@dataclass(frozen=True)
class Block:
    """One fenced block."""

    page: Path
    line: int
    info: str
    text: str

    @property
    def place(self) -> str:
        return f"{self.page.name}:{self.line}"

    @property
    def file(self) -> str:
        """The name its first line gives it, or nothing."""
        found = _NAME.match(self.text)
        return found[1] if found else ""


def blocks_of(page: Path) -> list[Block]:
    """All fenced blocks of a page, in order."""
    text = page.read_text("utf-8")
    return [Block(page, text.count("\n", 0, m.start()) + 1, m[1].strip(), m[2]) for m in _FENCE.finditer(text)]


def prose_of(page: Path) -> str:
    """The page without its blocks."""
    return _FENCE.sub("", page.read_text("utf-8"))


def commands_of(text: str) -> tuple[list[str], list[str]]:
    """Commands and shown output of a console block."""
    commands: list[str] = []
    shown: list[str] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            commands.append(line[2:])
        elif line.startswith("> ") and commands:
            commands[-1] += "\n" + line[2:]
        elif line.strip() not in ("", "..."):
            shown.append(line)
    return commands, shown


def free_port() -> str:
    """A port that nobody uses now, neither for TCP nor for UDP."""
    with socket.socket() as tcp, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        tcp.bind(("127.0.0.1", 0))
        udp.bind(tcp.getsockname())
        return str(tcp.getsockname()[1])


class Bench:
    """A folder in which the blocks of one page run, one after another."""

    def __init__(self, folder: Path, page: Path) -> None:
        self.folder = folder
        text = page.read_text("utf-8")
        self._node = f"docs-{os.getpid()}-{page.stem.lower()}"[:40]
        ports = re.findall(r"(?:127\.0\.0\.1:|\bport = )(\d+)", text)
        self._ports = {port: free_port() for port in {"9872", "9873", "9874", "8080", *ports}}
        self._publishes = any(port in text for port in ("9872", "9873", "9874"))
        self._page = 'address = "http://127.0.0.1:8080"' if ":8080" in text else "enabled = false"
        self._count = 0
        (folder / "tools").symlink_to(TOP / "tools")  # pages start them from the top of the repository
        self.write("default.toml", (TOP / "configs" / "pendulum.toml").read_text("utf-8"))

    def write(self, name: str, text: str, *, config: bool = True) -> None:
        """Write a file with private names in it."""
        if name.endswith(".toml") and config:
            text = self._private_config(text)
        (self.folder / name).write_text(self._private(text), "utf-8")

    def _private(self, text: str) -> str:
        return re.sub("|".join(rf"\b{p}\b" for p in self._ports), lambda m: self._ports[m[0]], text)

    def _private_config(self, text: str) -> str:
        """With a node name of its own; published and shown only where the page is about that, which saves processes."""
        mine = f'[node]\nname = "{self._node}"\n'
        text, found = re.subn(r"^\[node\]\n(name = .*\n)?", mine, text, flags=re.MULTILINE)
        text += "" if found else f"\n{mine}"
        if "[web]" not in text:
            text += f"\n[web]\n{self._page}\n"
        if "[bridge]" in text:
            return text
        open_ones = "\n".join(
            f'{key} = "tcp://127.0.0.1:{port}"' for key, port in (("publish", 9872), ("commands", 9873), ("ecu", 9874))
        )
        return f"{text}\n[bridge]\n{open_ones if self._publishes else 'enabled = false'}\n"

    def work(self, blocks: Sequence[Block]) -> None:
        """Do what the blocks say, in order; an AssertionError tells where and why one failed.

        Configs are checked at the end, when all files they name are there, from the folder that the reader works in,
        and in this process: it is much quicker.
        """
        files = [(block, self._do(block)) for block in blocks]
        with self._importable(), chdir(self.folder):
            for block, name in files:
                if block.info == "toml check":
                    answer = CliRunner().invoke(app, ["check", str(self.folder / name)])
                    assert answer.exit_code == 0, f"{block.place}: {answer.output}"

    @contextmanager
    def _importable(self) -> Iterator[None]:
        """Let modules in the folder be imported, and forget them afterwards."""
        sys.path.insert(0, str(self.folder))
        try:
            yield
        finally:
            sys.path.remove(str(self.folder))
            for name, module in list(sys.modules.items()):
                if str(getattr(module, "__file__", "")).startswith(str(self.folder)):
                    del sys.modules[name]

    def _do(self, block: Block) -> str:
        """Do what the block says; the name of its file."""
        self._count += 1
        language = block.info.split(" ")[0]
        name = block.file or f"snippet_{self._count}.{'py' if language == 'python' else language}"
        if language in ("python", "c", "dbc", "toml"):
            self.write(name, block.text, config=block.info != "toml data")
        if block.info == "python run":
            self._run(block, f"python {name}")
        elif block.info == "sh":
            self._run(block, f"bash -n <<'END_OF_BLOCK'\n{block.text}END_OF_BLOCK")
        elif language == "console":
            self._console(block)
        return name

    def _console(self, block: Block) -> None:
        commands, shown = commands_of(block.text)
        assert commands, f"{block.place}: no line begins with '$ '"
        printed = _one_line(self._run(block, *map(self._here, commands)))
        for line in shown if block.info == "console" else []:
            assert pattern_of(line).search(printed), f"{block.place}: shows\n  {line}\nbut there came\n{printed}"

    def _here(self, command: str) -> str:
        """A command as it is run here: with private ports, and the default config under a private name."""
        return self._private(_NO_CONFIG.sub(r"hilnode \1 default.toml", command))

    def _run(self, block: Block, *commands: str) -> str:
        """Run the commands in one shell; the output, with the names that the documentation has."""
        script = "".join(f'{c}\nrc=$?; [ $rc = 0 ] || {{ echo "exit code $rc"; exit $rc; }}\n' for c in commands)
        paths = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        shell = subprocess.Popen(
            ["bash", "-c", script],
            cwd=self.folder,
            env={**os.environ, "PATH": paths, "COLUMNS": "120", "TERM": "dumb", "PYTHONDONTWRITEBYTECODE": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            printed, _ = shell.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(shell.pid, signal.SIGKILL)
            printed, _ = shell.communicate()
            raise AssertionError(f"{block.place}: not done after {PATIENCE} s:\n{script}\n{printed}") from None
        assert shell.returncode == 0, f"{block.place}: failed:\n{script}\n{printed}"
        return printed.replace(self._node, "bench")


def _one_line(text: str) -> str:
    return " ".join(text.split())


def pattern_of(line: str) -> re.Pattern[str]:
    """What matches a line whatever its numbers, times, spaces and the places where it was wrapped."""
    return re.compile(r"\s+".join(_pattern_of_word(word) for word in line.split()))


def _pattern_of_word(word: str) -> str:
    if word in _TIMES:
        return "|".join(_TIMES).join(("(?:", ")"))
    return re.escape(_NUMBER.sub("0", word)).replace("0", _NUMBER.pattern)

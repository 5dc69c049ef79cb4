"""Chromium without a window, driven over its DevTools protocol: just as much as the tests of the page need.

    with Browser() as browser:
        page = browser.open("http://127.0.0.1:8080/")
        page.wait("window.hilnode?.frame > 3")
        page.screenshot("viewer")

One websocket per page, answers by number, events gathered: console messages, exceptions and every request.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (  # other ways to draw without a graphics card are far slower
    *("--headless", "--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--disable-quic"),
    *("--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-dev-shm-usage", "--mute-audio", "--remote-debugging-port=0"),
)
ARTEFACTS = os.environ.get("HILNODE_WEB_ARTEFACTS")  # folder for screenshots; none are kept without


class Page:
    """One tab."""

    def __init__(self, address: str, close: Any) -> None:
        self._open = contextlib.ExitStack()
        self._socket: ClientConnection = self._open.enter_context(connect(address, max_size=None, ping_interval=None))
        self._close = close
        self._number = 0
        self.console: list[str] = []  # errors and warnings
        self.requests: list[str] = []
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, /, **parameters: Any) -> dict[str, Any]:
        """Call the browser and wait for its answer; what happens meanwhile is noted."""
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv(60))
            if message.get("id") == self._number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']['message']}")
                return message["result"]
            self._note(message.get("method"), message.get("params", {}))

    def _note(self, method: str | None, about: dict[str, Any]) -> None:
        if method == "Runtime.consoleAPICalled" and about["type"] in ("error", "warning", "assert"):
            self.console.append(" ".join(str(arg.get("value", arg.get("description"))) for arg in about["args"]))
        elif method == "Runtime.exceptionThrown":
            details = about["exceptionDetails"]
            self.console.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Log.entryAdded" and about["entry"]["level"] in ("error", "warning"):
            self.console.append(f"{about['entry']['text']} {about['entry'].get('url', '')}")
        elif method == "Network.requestWillBeSent":
            self.requests.append(about["request"]["url"])
        elif method == "Network.webSocketCreated":
            self.requests.append(about["url"])

    def run(self, script: str) -> Any:
        """The value of an expression in the page, promises awaited."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"].get("exception", {}).get("description", script))
        return answer["result"].get("value")

    def wait(self, condition: str, seconds: float = 30.0) -> Any:
        """Wait until an expression is true; its value."""
        until = time.monotonic() + seconds
        while not (value := self.run(condition)):
            if time.monotonic() > until:
                raise TimeoutError(f"not true within {seconds} s: {condition}; console: {self.console[-3:]}")
            time.sleep(0.05)
        return value

    def go(self, url: str) -> None:
        self.call("Page.navigate", url=url)
        self.wait("document.readyState === 'complete'")

    def before_load(self, script: str) -> None:
        """Run a script in every document before its own."""
        self.call("Page.addScriptToEvaluateOnNewDocument", source=script)

    def key(self, key: str, code: str, *, down: bool) -> None:
        self.call("Input.dispatchKeyEvent", type="keyDown" if down else "keyUp", key=key, code=code)

    def mouse(self, kind: str, x: float, y: float, buttons: int = 0) -> None:
        button = "none" if kind == "mouseMoved" and not buttons else "left"
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button=button, buttons=buttons, clickCount=1)

    def click(self, x: float, y: float) -> None:
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y, 1)
        self.mouse("mouseReleased", x, y)

    def click_on(self, selector: str) -> None:
        """Click in the middle of the first element of a CSS selector."""
        self.click(*self.middle(selector))

    def middle(self, selector: str) -> tuple[float, float]:
        query = json.dumps(selector)
        x, y = self.run(
            f"(() => {{ const e = document.querySelector({query}); e.scrollIntoView({{block: 'nearest'}}); "
            "const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        return x, y

    def fill(self, selector: str, value: object, event: str = "input") -> None:
        """Give an input a value, as if it had been typed."""
        self.run(
            f"(e => {{ e.value = {json.dumps(value)}; e.dispatchEvent(new Event({json.dumps(event)})); }})"
            f"(document.querySelector({json.dumps(selector)}))"
        )

    def texts(self, selector: str) -> list[str]:
        """Texts of all elements of a selector that are not hidden."""
        query = json.dumps(selector)
        return self.run(f"[...document.querySelectorAll({query})].filter((e) => !e.hidden).map((e) => e.textContent)")

    def screenshot(self, name: str) -> None:
        """Keep a picture of the page, if somebody wants pictures."""
        if not ARTEFACTS:
            return
        Path(ARTEFACTS).mkdir(parents=True, exist_ok=True)
        data = self.call("Page.captureScreenshot", format="png")["data"]
        (Path(ARTEFACTS) / f"{name}.png").write_bytes(base64.b64decode(data))

    def close(self) -> None:
        self._close()
        self._open.close()


class Browser:
    """One browser with a profile of its own, which is thrown away."""

    def __init__(self, width: int = 1280, height: int = 720) -> None:
        assert CHROMIUM, "chromium is missing: apt-get install chromium"
        self._home = tempfile.TemporaryDirectory(prefix="hilnode-web-", ignore_cleanup_errors=True)
        self._process = subprocess.Popen(
            [CHROMIUM, *FLAGS, f"--user-data-dir={self._home.name}", f"--window-size={width},{height}", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self._size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}

    def __enter__(self) -> Browser:
        port = Path(self._home.name) / "DevToolsActivePort"
        until = time.monotonic() + 60
        while not (port.exists() and port.read_text().count("\n")):
            assert self._process.poll() is None, "chromium has ended"
            assert time.monotonic() < until, "chromium does not start"
            time.sleep(0.05)
        self._base = f"http://127.0.0.1:{port.read_text().split()[0]}"
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._home.cleanup()

    def _ask(self, path: str, method: str = "GET") -> Any:
        with urllib.request.urlopen(urllib.request.Request(self._base + path, method=method), timeout=30) as answer:
            return answer.read()

    def open(self, url: str, *, before: str = "") -> Page:
        """A new tab at an address; `before` is run in it before the page's own scripts."""
        tab = json.loads(self._ask("/json/new?about:blank", "PUT"))
        page = Page(tab["webSocketDebuggerUrl"], lambda: self._ask(f"/json/close/{tab['id']}"))
        page.call("Emulation.setDeviceMetricsOverride", **self._size)
        page.call("Emulation.setFocusEmulationEnabled", enabled=True)
        if before:
            page.before_load(before)
        page.go(url)
        return page

"""Headless Chromium, spoken to by its DevTools protocol: what a page shows, draws, prints and asks the network for."""

from __future__ import annotations

import base64
import itertools
import json
import shutil
import subprocess
import tempfile
import time
import urllib.request
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from websockets.sync.client import connect

CHROMIUM = shutil.which("chromium")
START_S = 60


class Page:
    """A tab. Everything that its console says, and every request, is kept."""

    def __init__(self, socket: Any) -> None:
        self.socket = socket
        self.ids = itertools.count(1)
        self.console: list[str] = []
        self.requests: list[str] = []
        self.loaded = False
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict:
        number = next(self.ids)
        self.socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            answer = json.loads(self.socket.recv(timeout=START_S))
            if answer.get("id") == number:
                assert "error" not in answer, (method, answer)
                return answer["result"]
            self.note(answer)

    def note(self, event: dict) -> None:
        method, parameters = event["method"], event["params"]
        if method == "Runtime.consoleAPICalled":
            self.console.append(str(parameters["args"]))
        elif method == "Runtime.exceptionThrown":
            self.console.append(str(parameters["exceptionDetails"]))
        elif method == "Log.entryAdded":
            self.console.append(parameters["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif method == "Page.loadEventFired":
            self.loaded = True

    def open(self, address: str) -> float:
        """Returns the seconds until the page was loaded and drawn."""
        self.loaded, begin = False, time.monotonic()
        self.call("Page.navigate", url=address)
        while not self.loaded:
            self.note(json.loads(self.socket.recv(timeout=START_S)))
        self.drawn()
        return time.monotonic() - begin

    def drawn(self) -> None:
        """Returns once what has changed is drawn."""
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def run(self, script: str) -> Any:
        """The value of an expression, a promise awaited."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def size(self, width: int, height: int = 900, scale: float = 1) -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=False)
        self.drawn()

    def media(self, scheme: str = "light", media: str = "") -> None:
        self.call("Emulation.setEmulatedMedia", media=media, features=[{"name": "prefers-color-scheme", "value": scheme}])

    def mouse(self, kind: str, x: float, y: float, pressed: bool = False, clicks: int = 0) -> None:
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left" if pressed or clicks else "none",
                  buttons=int(pressed), clickCount=clicks)

    def key(self, key: str) -> None:
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, **({"text": key} if len(key) == 1 and kind == "keyDown" else {}))

    def picture(self, file: Path, whole: bool = True) -> None:
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        file.write_bytes(base64.b64decode(answer["data"]))

    def pdf(self) -> bytes:
        return base64.b64decode(self.call("Page.printToPDF", printBackground=False)["data"])


class Browser:
    """A process of its own, with a profile of its own."""

    def __init__(self) -> None:
        assert CHROMIUM is not None
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.connections = ExitStack()
        self.process = subprocess.Popen(
            [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0", "--no-first-run",
             "--disable-background-networking", "--hide-scrollbars", f"--user-data-dir={self.profile.name}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def page(self) -> Page:
        port = self.port()
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json") as answer:
            (target, *_) = [each for each in json.load(answer) if each["type"] == "page"]
        return Page(self.connections.enter_context(connect(target["webSocketDebuggerUrl"], max_size=None, proxy=None)))

    def port(self) -> int:
        file = Path(self.profile.name, "DevToolsActivePort")
        end = time.monotonic() + START_S
        while time.monotonic() < end:
            with suppress(FileNotFoundError, IndexError, ValueError):
                return int(file.read_text().splitlines()[0])
            time.sleep(0.05)
        raise TimeoutError("Chromium did not start")

    def close(self) -> None:
        self.connections.close()
        self.process.terminate()
        self.process.wait(30)
        self.profile.cleanup()

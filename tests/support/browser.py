# SPDX-License-Identifier: BSD-3-Clause
"""Headless Chromium, driven through its DevTools protocol over a pair of pipes: no port, no driver, no
network. Everything that the page says or asks for is kept: console, exceptions, log, requests."""
import base64
import json
import os
import shutil
import subprocess
import tempfile
import threading
import time

NAMES = ("chromium", "chromium-browser", "google-chrome")
WITHIN_S = 60


def find():
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Browser:
    def __init__(self, path=None):
        self.home = tempfile.mkdtemp(prefix="weft-browser-")
        ours_read, theirs_write = os.pipe()
        theirs_read, ours_write = os.pipe()
        # It reads from descriptor 3 and writes to 4. A shell may know descriptors of one digit only.
        script = 'exec "$@" 3<&0 4>&1 </dev/null >&2'
        self.errors = open(os.path.join(self.home, "stderr"), "wb")
        self.popen = subprocess.Popen(
            ["sh", "-c", script, "sh", path or find(), "--headless=new", "--no-sandbox", "--disable-gpu",
             "--remote-debugging-pipe", "--no-first-run", "--hide-scrollbars", "--force-color-profile=srgb",
             "--disable-dev-shm-usage", "--disable-extensions", "--disable-background-networking",
             "--disable-component-update", "--disable-sync", f"--user-data-dir={self.home}/profile",
             "about:blank"],
            stdin=theirs_read, stdout=theirs_write, stderr=self.errors, start_new_session=True)
        os.close(theirs_read)
        os.close(theirs_write)
        self.writer = os.fdopen(ours_write, "wb", buffering=0)
        self.reader = os.fdopen(ours_read, "rb")
        self.news = threading.Condition()
        self.answers, self.events, self.number, self.ended = {}, [], 0, False
        threading.Thread(target=self._read, daemon=True).start()
        targets = self.call("Target.getTargets", session=None)["targetInfos"]
        page = next(t["targetId"] for t in targets if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", session=None, targetId=page,
                                 flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "DOM"):
            self.call(domain + ".enable")

    def _read(self):
        kept = b""
        while True:
            piece = os.read(self.reader.fileno(), 1 << 20)
            *whole, kept = (kept + piece).split(b"\0")
            with self.news:
                for text in whole:
                    message = json.loads(text)
                    if "id" in message:
                        self.answers[message["id"]] = message
                    else:
                        self.events.append(message)
                self.ended = not piece
                self.news.notify_all()
            if not piece:
                return

    def _await(self, found, what):
        until = time.monotonic() + WITHIN_S
        with self.news:
            while True:
                value = found()
                if value is not None:
                    return value
                left = until - time.monotonic()
                if left <= 0 or self.ended:
                    raise RuntimeError(f"the browser did not answer: {what}")
                self.news.wait(min(left, 1))

    def call(self, method, session="", **params):
        self.number += 1
        number = self.number
        message = {"id": number, "method": method, "params": params}
        if session is not None:
            message["sessionId"] = self.session
        self.writer.write(json.dumps(message).encode() + b"\0")
        answer = self._await(lambda: self.answers.pop(number, None), method)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def open(self, path):
        """Loads a file; what it says from now on is kept anew."""
        with self.news:
            self.events.clear()
        self.call("Page.navigate", url="file://" + os.path.abspath(path))
        self._await(lambda: True if self.said("Page.loadEventFired") else None, "load " + path)

    def said(self, *methods):
        return [event["params"] for event in list(self.events) if event["method"] in methods]

    def value(self, script):
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"])[:2000])
        return answer["result"].get("value")

    def screen(self, width, height, phone=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=2 if phone else 1, mobile=phone)

    def media(self, kind="", dark=False):
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media=kind, features=[scheme])

    def move(self, x, y):
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def tap(self, x, y):
        """By a finger."""
        self.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
        self.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    def picture(self, path, whole=True):
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        with open(path, "wb") as out:
            out.write(base64.b64decode(answer["data"]))

    def paper(self, path):
        answer = self.call("Page.printToPDF", printBackground=True, preferCSSPageSize=True)
        with open(path, "wb") as out:
            out.write(base64.b64decode(answer["data"]))

    def close(self):
        try:
            self.call("Browser.close", session=None)
            self.popen.wait(10)
        except (RuntimeError, OSError, subprocess.TimeoutExpired):
            self.popen.kill()
            self.popen.wait()
        self.errors.close()
        shutil.rmtree(self.home, ignore_errors=True)

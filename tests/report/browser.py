"""A headless Chromium, driven over the WebDriver protocol with the standard library alone."""

import base64
import json
import shutil
import subprocess
import time
import urllib.error
import urllib.request

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
KEYS = {"ArrowLeft": "\ue012", "ArrowUp": "\ue013", "ArrowRight": "\ue014", "ArrowDown": "\ue015"}


def why_missing():
    """Say what is not installed, or None."""
    missing = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    if not missing:
        return None
    return f"{' and '.join(missing)} not found: install Debian's chromium-driver"


class Browser:
    """One window; `page` opens a file in a given size and colour scheme."""

    def __init__(self, folder):
        self.log = folder / "driver.log"
        with self.log.open("w") as log:
            self.driver = subprocess.Popen(
                ["chromedriver", "--port=0"], stdout=log, stderr=subprocess.STDOUT
            )
        try:
            self.base = f"http://127.0.0.1:{self._port()}"
            options = {
                "binary": shutil.which("chromium"),
                "args": [*FLAGS, f"--user-data-dir={folder / 'profile'}"],
            }
            wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
            made = self._call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
            self.base += f"/session/{made['sessionId']}"
        except BaseException:
            self.driver.kill()
            self.driver.wait()
            raise

    def _port(self, seconds=20):
        """The driver chooses a free port and says so in its log."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            words = self.log.read_text().split("started successfully on port ")
            if len(words) == 2 and words[1].strip():
                return int(words[1].split()[0].rstrip("."))
            time.sleep(0.05)
        raise RuntimeError(f"chromedriver did not start: {self.log.read_text()}")

    def _call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        head = {"Content-Type": "application/json"}
        request = urllib.request.Request(self.base + path, data, head, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.loads(answer.read())["value"]
        except urllib.error.HTTPError as error:
            with error:
                raise RuntimeError(error.read().decode()) from error

    def devtools(self, command, **parameters):
        body = {"cmd": command, "params": parameters}
        return self._call("POST", "/goog/cdp/execute", body)

    def page(self, path, width=1100, height=900, scheme="light", media=""):
        self.devtools(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.devtools("Emulation.setEmulatedMedia", media=media, features=features)
        self._call("POST", "/url", {"url": path.as_uri()})

    def run(self, script, *arguments):
        """Return what a script returns in the page; its arguments are `arguments[0]` and so on."""
        return self._call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def complaints(self):
        """What the browser has logged: errors of scripts, refused loads."""
        return self._call("POST", "/se/log", {"type": "browser"})

    def press(self, selector, key, times=1):
        found = self._call("POST", "/element", {"using": "css selector", "value": selector})
        self._call("POST", f"/element/{found[ELEMENT]}/value", {"text": KEYS[key] * times})

    def drag(self, start, end):
        """Press at a point of the window, move, let go."""
        moves = [
            {"type": "pointerMove", "x": start[0], "y": start[1]},
            {"type": "pointerDown", "button": 0},
            {"type": "pointerMove", "x": end[0], "y": end[1], "duration": 50},
            {"type": "pointerUp", "button": 0},
        ]
        moves[0]["duration"] = 0
        pointer = {"type": "pointer", "id": "mouse", "actions": moves}
        self._call("POST", "/actions", {"actions": [pointer]})

    def screenshot(self, path, height=None):
        """Save the whole page, or its first `height` pixels."""
        size = self.run("return [innerWidth, document.documentElement.scrollHeight]")
        clip = {"x": 0, "y": 0, "width": size[0], "height": height or size[1], "scale": 1}
        shot = self.devtools("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        path.write_bytes(base64.b64decode(shot["data"]))

    def close(self):
        try:
            self._call("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait(20)

"""Headless Chromium for ci/report and ci/docs."""

import json
import os
import shutil
import subprocess
import sys


class Browser:
    """Chromium, controlled through its debugging pipe."""

    def __init__(self, folder):
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()
        flags = "--headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --disable-background-networking"
        pipe = f"--remote-debugging-pipe about:blank 3<&{theirs_in} 4>&{theirs_out}"
        command = f'exec chromium {flags} --user-data-dir="$0" {pipe}'
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen(["bash", "-c", command, folder], pass_fds=(theirs_in, theirs_out), **quiet)
        os.close(theirs_in)
        os.close(theirs_out)
        self.input, self.output = os.fdopen(ours_in, "rb", buffering=0), os.fdopen(ours_out, "wb", buffering=0)
        self.rest, self.last, self.events, self.session = b"", 0, [], None
        page = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ["Page", "Network", "Runtime", "Log"]:
            self.call(f"{domain}.enable")

    def receive(self):
        while b"\0" not in self.rest:
            part = self.input.read(1 << 16)
            if not part:
                sys.exit("FAILED: Chromium ended")
            self.rest += part
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **parameters):
        self.last += 1
        message = {"id": self.last, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        self.output.write(json.dumps(message).encode() + b"\0")
        while (answer := self.receive()).get("id") != self.last:
            self.events.append(answer)
        if "error" in answer:
            sys.exit(f"FAILED: {method}: {answer['error']}")
        return answer["result"]

    def wait(self, method):
        while not any(event.get("method") == method for event in self.events):
            self.events.append(self.receive())

    def close(self):
        try:
            self.call("Browser.close")
        finally:
            self.process.wait(30)


def install():
    if shutil.which("chromium"):
        return
    sudo = [] if os.geteuid() == 0 else ["sudo"]
    environment = ["env", "DEBIAN_FRONTEND=noninteractive"]
    for command in (["apt-get", "update", "-qq"], ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "chromium"]):
        try:
            done = subprocess.run(sudo + environment + command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        except OSError as error:
            print(f"skipped: no chromium here, and apt can't be run: {error}")
            sys.exit(77)
        if done.returncode:
            said = done.stderr.strip().splitlines() or ["it does not say why"]
            print(f"skipped: no chromium here, and apt has none: {said[-1]}")
            sys.exit(77)

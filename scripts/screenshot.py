"""Take the README's picture of TensorBoard on the project that quickstart.py trained.

Needs Debian's `chromium`. python3 scripts/screenshot.py [--output=docs/tensorboard.png]
"""

import argparse
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

import environment

PROJECT = environment.BUILD / "digit-classifier"
START_SECONDS = 120
TAGS = "loss%7Cerror%7Clearning_rate%7Cgradient_norm"
# Virtual time runs as fast as the page allows: this is an upper bound for its requests and drawing.
PAGE_MILLISECONDS = 60_000


def main() -> None:
    """Start TensorBoard, let a headless browser draw it, and stop it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("docs/tensorboard.png"))
    output = parser.parse_args().output.resolve()
    browser = shutil.which("chromium")
    if browser is None:
        sys.exit("error: no chromium; install Debian's package: apt-get install chromium")
    if not (PROJECT / "runs" / "baseline").is_dir():
        sys.exit(f"error: no run in {PROJECT}; first: python3 scripts/quickstart.py")
    uv = environment.install_uv()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    board = subprocess.Popen(
        [uv, "run", "tensorboard", "--logdir=runs", "--host=127.0.0.1", f"--port={port}"],
        cwd=PROJECT,
        env=environment.clean_environment(uv),
        stderr=subprocess.DEVNULL,
    )
    try:
        address = f"http://127.0.0.1:{port}/"
        wait_for(address)
        with tempfile.TemporaryDirectory() as profile:
            take(browser, f"{address}#scalars&tagFilter={TAGS}", output, profile)
    finally:
        board.terminate()
        board.wait()


def wait_for(address: str) -> None:
    """Return when something answers at `address`."""
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        try:
            urllib.request.urlopen(address, timeout=5).close()
            return
        except (urllib.error.URLError, TimeoutError):
            time.sleep(1)
    sys.exit(f"error: TensorBoard did not answer within {START_SECONDS} s")


def take(browser: str, address: str, output: Path, profile: str) -> None:
    """Draw `address` into the PNG `output`, with a browser that asks nobody else."""
    environment.run(
        [
            *(browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
            *("--disable-quic", "--disable-sync", "--disable-background-networking"),
            *("--disable-component-update", "--no-first-run", f"--user-data-dir={profile}"),
            *("--window-size=1760,480", f"--virtual-time-budget={PAGE_MILLISECONDS}"),
            *(f"--screenshot={output}", address),
        ]
    )


if __name__ == "__main__":
    main()

"""A headless Chromium that looks at TensorBoard and at pages, for the tests and for the pictures in README.md.

Playwright drives the browser that the system has; it downloads none.
"""

import contextlib
import json
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
START_SECONDS = 300  # a fresh environment on a busy machine first compiles TensorFlow
PAGE_MILLISECONDS = 60_000


@dataclass
class Watched:
    """A page of the browser, with what it asked for and what went wrong in it."""

    page: Page
    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


def find() -> str | None:
    """Return the path of an installed browser."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


@contextlib.contextmanager
def watched(width: int = 1600, height: int = 1000) -> Iterator[Watched]:
    """Open an empty page."""
    program = find()
    if program is None:
        sys.exit("error: no chromium; install Debian's package: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": width, "height": height})
        page.set_default_timeout(PAGE_MILLISECONDS)
        seen = Watched(page)
        page.on("request", lambda request: seen.requests.append(request.url))
        page.on("pageerror", lambda error: seen.errors.append(str(error)))
        page.on(
            "console",
            lambda line: seen.errors.append(line.text) if line.type == "error" else None,
        )
        yield seen
        browser.close()


@contextlib.contextmanager
def tensorboard(project: Path, runs: str = "runs") -> Iterator[str]:
    """Start the project's TensorBoard on its runs, and yield its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    scripts = "Scripts" if sys.platform == "win32" else "bin"
    program = (project / ".venv" / scripts / "tensorboard").resolve()
    board = subprocess.Popen(
        [program, f"--logdir={runs}", "--host=127.0.0.1", f"--port={port}"],
        cwd=project,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        address = f"http://127.0.0.1:{port}/"
        _wait_for(address)
        yield address
    finally:
        board.terminate()
        board.wait()


def show_curves(page: Page, address: str, *tags: str) -> None:
    """Show the charts and pictures of these tags, and return when each is drawn."""
    page.goto(f"{address}?tagFilter={'%7C'.join(tags)}#timeseries")
    page.get_by_role("button", name="Settings").click()  # closes their panel
    for tag in tags:
        page.locator("card-view", has_text=tag).first.wait_for()
    page.wait_for_timeout(2_000)  # curves move into their places


def show_hparams(page: Page, address: str) -> None:
    """Show the table of runs and hyper-parameters, and return when it has rows."""
    page.goto(f"{address}#hparams")
    page.get_by_text("Trial ID").wait_for()


def show_graph(page: Page, address: str) -> None:
    """Show the graph of the model, and return when it is drawn."""
    page.goto(f"{address}#graphs")
    page.locator("tf-graph-scene g.node").first.wait_for()


def _wait_for(address: str) -> None:
    """Wait until TensorBoard answers and has read its runs: a page that is opened before stays empty."""
    end = time.monotonic() + START_SECONDS
    seen: dict[str, object] = {}
    while time.monotonic() < end:
        try:
            with urllib.request.urlopen(f"{address}data/plugin/scalars/tags", timeout=5) as answer:
                tags = json.load(answer)
        except (urllib.error.URLError, TimeoutError):
            tags = {}
        if tags and tags == seen:
            return
        seen = tags
        time.sleep(1)
    sys.exit(f"error: TensorBoard did not show its runs within {START_SECONDS} s")

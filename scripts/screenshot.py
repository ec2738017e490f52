"""Take the pictures in README.md of the project that quickstart.py trained: uv run python scripts/screenshot.py.

Needs Debian's `chromium`.
"""

import argparse
import sys
from pathlib import Path

import browser
import environment

PROJECT = environment.BUILD / "digit-classifier"
TAGS = ("loss", "error", "learning_rate", "gradient_norm", "examples_per_second", "confusion")


def take(project: Path, folder: Path) -> list[Path]:
    """Write the pictures of a project's runs into `folder`, and return them."""
    board, report = folder / "tensorboard.png", folder / "report.png"
    with browser.watched(width=1600, height=1500) as seen, browser.tensorboard(project) as address:
        browser.show_curves(seen.page, address, *TAGS)
        seen.page.screenshot(path=board)
        seen.page.goto((project / "runs" / "baseline" / "report.html").resolve().as_uri())
        seen.page.set_viewport_size({"width": 1200, "height": 1500})
        seen.page.screenshot(path=report)
    return [board, report]


def main() -> None:
    """Write the pictures of the default project."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--project", type=Path, default=PROJECT)
    parser.add_argument("--output", type=Path, default=environment.REPOSITORY / "docs")
    arguments = parser.parse_args()
    if not (arguments.project / "runs" / "baseline" / "report.html").exists():
        sys.exit(f"error: no run in {arguments.project}; first: python3 scripts/quickstart.py")
    for picture in take(arguments.project, arguments.output):
        print(picture)


if __name__ == "__main__":
    main()

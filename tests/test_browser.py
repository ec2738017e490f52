"""What a person sees: TensorBoard on a real run, and the report of it, in a real browser."""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import REPOSITORY, BakedProject, Result, run

sys.path.insert(0, str(REPOSITORY / "scripts"))
browser = pytest.importorskip("browser", reason="playwright is not installed")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        browser.find() is None and os.environ.get("TF_TEMPLATE_SERVICES") != "required",
        reason="no Chromium; apt-get install chromium",
    ),
]


@pytest.fixture(scope="module")
def project(
    default_project: BakedProject,
    quick_start: dict[str, Result],
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """Return the project of the quick start with a second run, which differs in two flags, and both evaluated.

    It has a folder of its own: how many columns and cards TensorBoard shows depends on the other runs.
    """
    folder = tmp_path_factory.mktemp("shown")
    shutil.copytree(default_project.path / "runs" / "baseline", folder / "runs" / "baseline")
    other = f"--model_dir={folder / 'runs' / 'other'}"
    default_project.module("train", other, "--train_steps=100", "--learning_rate=0.02")
    default_project.module("evaluate", other, "--split=test")
    (folder / ".venv").symlink_to(default_project.path / ".venv")
    return folder


@pytest.fixture(scope="module")
def board(project: Path) -> Iterator[str]:
    """Yield the address of TensorBoard on the project's runs."""
    with browser.tensorboard(project) as address:
        yield address


def test_loss_and_error_of_both_splits_share_a_chart(board: str) -> None:
    with browser.watched() as seen:
        browser.show_curves(seen.page, board, "loss", "error")
        for tag in ("loss", "error"):
            card = seen.page.locator("card-view", has_text=tag).first
            shown = card.inner_text()
            assert "baseline/train" in shown
            assert "baseline/validation" in shown
            assert card.locator("svg path, canvas").count() > 0
        assert seen.errors == []


def test_throughput_and_input_wait_have_curves(board: str) -> None:
    tags = ("learning_rate", "gradient_norm", "examples_per_second", "input_wait")
    with browser.watched() as seen:
        browser.show_curves(seen.page, board, *tags)
        assert seen.page.locator("card-view").count() >= len(tags)


def test_samples_mistakes_and_confusion_are_pictures(board: str) -> None:
    with browser.watched() as seen:
        browser.show_curves(seen.page, board, "confusion", "mistakes")
        images = seen.page.locator("card-view img").all()
        assert len(images) >= 2
        assert min(int(image.evaluate("image => image.naturalWidth")) for image in images) > 100
        seen.page.goto(f"{board}#images")
        seen.page.locator("tf-image-loader img").first.wait_for()


def test_runs_are_compared_by_the_flags_that_differ(board: str) -> None:
    with browser.watched() as seen:
        browser.show_hparams(seen.page, board)
        cells = seen.page.locator("vaadin-grid-cell-content").all_inner_texts()
        assert {"learning_rate", "0.020000", "0.050000"} <= set(cells)
        assert cells.index("learning_rate") < cells.index("augment")  # those that differ come first


def test_the_graph_shows_the_layers_as_scopes(board: str) -> None:
    with browser.watched() as seen:
        browser.show_graph(seen.page, board)
        nodes = " ".join(seen.page.locator("tf-graph-scene text").all_text_contents())
        for name in ("network", "logits", "inference"):
            assert name in nodes


def test_the_report_renders_alone(project: Path) -> None:
    report = project / "runs" / "baseline" / "report.html"
    with browser.watched() as seen:
        seen.page.goto(report.as_uri())
        for heading in ("Metrics", "Split test", "Curves", "Flags", "Manifest"):
            assert seen.page.get_by_role("heading", name=heading, exact=True).is_visible()
        assert seen.page.locator("svg").first.bounding_box()["height"] > 100
        for image in seen.page.locator("img").all():
            assert int(image.evaluate("image => image.naturalWidth")) > 100
        assert seen.errors == []
        outside = [url for url in seen.requests if not url.startswith(("data:", report.as_uri()))]
        assert outside == []


def test_the_pictures_of_the_readme_are_made_by_the_script(project: Path, tmp_path: Path) -> None:
    script = REPOSITORY / "scripts" / "screenshot.py"
    arguments = (f"--project={project}", f"--output={tmp_path}")
    run(sys.executable, script, *arguments, folder=REPOSITORY)
    for name in ("tensorboard.png", "report.png"):
        assert (tmp_path / name).stat().st_size > 20_000
        assert f"docs/{name}" in (REPOSITORY / "README.md").read_text(encoding="utf-8")

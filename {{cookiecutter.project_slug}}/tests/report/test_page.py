import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from {{ cookiecutter.__package_name }}.engine.summaries import Writer
from {{ cookiecutter.__package_name }}.report import page


class Page(HTMLParser):
    """Collects the headings, and whatever an element would fetch."""

    def __init__(self):
        super().__init__()
        self.headings, self.fetched, self.tag = [], [], ""

    def handle_starttag(self, tag, attrs):
        self.tag = tag
        self.fetched += [
            value
            for name, value in attrs
            if name in ("src", "href", "xlink:href", "srcset", "data", "action")
        ]

    def handle_data(self, data):
        if self.tag in ("h1", "h2", "h3"):
            self.headings.append(data.strip())
            self.tag = ""


@pytest.fixture
def run(tmp_path):
    """Folder of a run that was evaluated, with a name that a page must not take for its own."""
    folder = tmp_path / "<b>run"
    writer = Writer(folder / "train")
    writer.scalars(np.array([1, 2]), {"loss": np.array([2.0, 1.0], np.float32)})
    metrics = {"global_step": 2, "loss": 1.0, "error": 0.5}
    (folder / "evaluation-test.json").write_text(json.dumps(metrics))
    (folder / "mistakes-test.png").write_bytes(b"picture")
    (folder / "flags.txt").write_text("--batch_size=64\n")
    (folder / "manifest.json").write_text('{"command": ["<script>"]}')
    return folder


def test_the_report_holds_metrics_examples_curves_flags_and_manifest(run):
    parser = Page()
    parser.feed(page.write(run, []).read_text())
    assert parser.headings == [
        *("<b>run", "Metrics", "Split test", "Examples with the highest loss"),
        *("Curves", "Flags", "Manifest"),
    ]


def test_every_curve_has_a_chart_those_of_single_variables_aside(run, monkeypatch):
    writer = Writer(run / "validation")
    one = np.array([1.0], np.float32)
    values = {"roc_auc": one, "loss": one, "own": one, "gradient_norm/dense/kernel": one}
    writer.scalars(np.array([2]), values)
    # Text is drawn as outlines, after a comment with its words.
    titles = re.findall("<!-- ([a-z_/]+) -->", page.write(run, []).read_text())
    found = [title for title in titles if title not in ("step", "train", "validation")]
    assert found == ["loss", "own", "roc_auc"]


def test_the_report_fetches_nothing_from_elsewhere(run):
    text = page.write(run, []).read_text()
    parser = Page()
    parser.feed(text)
    assert parser.fetched
    assert [value for value in parser.fetched if not value.startswith(("data:", "#"))] == []
    assert not re.search(r"@import|url\((?!#)", text)
    assert "<script>" not in text


def test_a_run_that_was_not_evaluated_has_a_report_all_the_same(tmp_path):
    (tmp_path / "run").mkdir()
    parser = Page()
    parser.feed(page.write(tmp_path / "run", []).read_text())
    assert parser.headings == ["run"]

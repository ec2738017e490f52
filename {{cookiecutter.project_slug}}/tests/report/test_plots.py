import io
import xml.etree.ElementTree as ElementTree

import numpy as np
from PIL import Image

from {{ cookiecutter.__package_name }}.report import plots


def texts(figure):
    return [text.get_text() for axes in figure.axes for text in axes.texts]


def test_the_confusion_matrix_shows_every_count_that_is_not_zero():
    figure = plots.confusion([[3, 1], [0, 12]], ["cat", "owl"])
    assert texts(figure) == ["3", "1", "12"]
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["cat", "owl"]
    assert np.asarray(axes.images[0].get_array()).tolist() == [[0.75, 0.25], [0, 1]]


def test_many_classes_have_colours_without_counts():
    assert texts(plots.confusion(np.eye(100), [f"class {n}" for n in range(100)])) == []


def test_each_picture_stands_under_its_title():
    images = np.random.default_rng(0).integers(0, 256, [3, 5, 4, 1]).astype(np.uint8)
    figure = plots.pictures(images, ["a", "b", "c"])
    assert [axes.get_title() for axes in figure.axes] == ["a", "b", "c"]
    assert np.array_equal(np.asarray(figure.axes[2].images[0].get_array()), images[2, ..., 0])


def test_splits_share_a_chart():
    curve = [(1, 0.5), (2, 0.25)]
    figure = plots.curves(
        {"loss": {"train": curve, "validation": [(2, 0.75)]}, "error": {"x": curve}}
    )
    assert [axes.get_title() for axes in figure.axes] == ["loss", "error"]
    train, validation = figure.axes[0].get_lines()
    assert np.asarray(train.get_xydata()).tolist() == [[1, 0.5], [2, 0.25]]
    assert np.asarray(validation.get_xydata()).tolist() == [[2, 0.75]]


def test_plots_become_files():
    figure = plots.curves({"loss": {"train": [(1, 0.5)]}})
    assert Image.open(io.BytesIO(plots.to_png(figure))).size == (420, 280)
    assert ElementTree.fromstring(plots.to_svg(figure)).tag.endswith("svg")

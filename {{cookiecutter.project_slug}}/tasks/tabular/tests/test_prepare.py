import codecs
import csv
import io
import json
import os

import numpy as np
import pytest
from sklearn.datasets import load_iris

from {{ cookiecutter.__package_name }} import columns, prepare
from {{ cookiecutter.__package_name }}.engine import dataset
from {{ cookiecutter.__package_name }}.engine.data import records
from {{ cookiecutter.__package_name }}.engine.errors import UserError

from comparing import assert_one_line_error


def read(prepared, name):
    """Returns all of a split, values by feature."""
    split = prepared.splits[name]
    reader = records.Reader(prepared.folder, name, split)
    batch = records.parse(reader.read(np.arange(split.examples)), prepared.features)
    return {feature: values.numpy() for feature, values in batch.items()}


def everything(prepared):
    splits = [read(prepared, name) for name in dataset.SPLITS]
    return {name: np.concatenate([split[name] for split in splits]) for name in splits[0]}


def houses(rows=60):
    """A table with text, dates, missing values, quoted line breaks and a byte-order mark."""
    generator = np.random.default_rng(0)
    out = io.StringIO()
    table = csv.writer(out)
    table.writerow(["Größe (m²)", "town", "sold", "note", "y", "const", "id", "price"])
    for i in range(rows):
        size = "" if i % 9 == 4 else f"{generator.uniform(20, 200):.1f}"
        town = ["Ulm", "Bonn, old", "Köln\n(south)", ""][i % 4]
        note = f'line one\nline "{i}"'
        number = generator.integers(0, 9)
        price = f"{100 + 3 * float(size or 110) + 10 * number:.2f}"
        table.writerow([size, town, f"2024-0{1 + i % 3}-01", note, number, "same", i, price])
    return codecs.BOM_UTF8 + out.getvalue().encode()


@pytest.fixture
def csv_file(tmp_path):
    """Writes a CSV file: `csv_file(text or bytes)`."""

    def write(contents, name="table.csv"):
        path = tmp_path / name
        path.write_bytes(contents if isinstance(contents, bytes) else contents.encode())
        return str(path)

    return write


def test_the_splits_together_are_the_flowers_of_scikit_learn(prepared):
    bundled = load_iris()
    got = everything(prepared)
    names = ["sepal_length_cm", "sepal_width_cm", "petal_length_cm", "petal_width_cm"]
    x = np.stack([got[f"x/{name}"] for name in names], axis=1)
    assert prepared.classes == bundled.target_names.tolist()
    assert sorted((*row, label) for row, label in zip(x.tolist(), got["y"], strict=True)) == sorted(
        (*row, label)
        for row, label in zip(bundled.data.astype("f4").tolist(), bundled.target, strict=True)
    )


def test_statistics_are_those_of_the_training_split(prepared):
    training = read(prepared, "train")
    described = columns.from_statistics(prepared.statistics)
    assert [column.name for column in described] == load_iris().feature_names
    for column in described:
        values = training[column.feature].astype(float)
        assert (column.mean, column.stddev) == pytest.approx((values.mean(), values.std()))
    counts = np.bincount(training["y"])
    assert prepared.statistics["class_weights"] == pytest.approx(counts.sum() / (3 * counts))


def test_a_table_of_everything_is_prepared(csv_file, tmp_path, capsys):
    source = csv_file(houses())
    prepared = prepare.prepare(source, tmp_path / "data", target="price", kinds={"id": "ignore"})
    assert capsys.readouterr().out.splitlines() == [
        "price: to predict, regression",
        "Größe (m²): number",
        "town: category",
        "sold: category",
        "note: ignore, is a text that differs in every row",
        "y: number",
        "const: ignore, is the same in every row",
        "id: ignore",
    ]
    assert prepared.source == "table.csv"
    assert prepared.classes == []
    assert {name: feature.dtype for name, feature in prepared.features.items()} == {
        "x/groe_m2": "float32",
        "x/town": "string",
        "x/sold": "string",
        "x/column_y": "float32",
        "y": "float32",
    }
    got = everything(prepared)
    text = houses().decode("utf-8-sig")
    expected = list(csv.reader(io.StringIO(text, newline="")))[1:]
    assert len(got["y"]) == len(expected) == 60
    assert sorted(text.decode() for text in got["x/town"]) == sorted(row[1] for row in expected)
    assert sorted(got["y"]) == sorted(np.float32(row[-1]) for row in expected)
    assert np.isnan(got["x/groe_m2"]).sum() == sum(not row[0] for row in expected)
    size, town, *_ = columns.from_statistics(prepared.statistics)
    training = read(prepared, "train")
    assert size.mean == pytest.approx(np.nanmean(training["x/groe_m2"].astype(float)))
    assert size.has_missing
    assert set(town.vocabulary) == {"Ulm", "Bonn, old", "Köln\n(south)", ""}
    assert prepared.statistics["mean"] == pytest.approx(training["y"].astype(float).mean())


def test_the_same_table_gives_the_same_bytes(csv_file, tmp_path):
    source = csv_file(houses())
    first, again = (prepare.prepare(source, tmp_path / n, target="price") for n in "ab")
    assert first.fingerprint == again.fingerprint
    other = prepare.prepare(source, tmp_path / "c", target="price", seed=1)
    assert first.fingerprint != other.fingerprint


def test_the_problem_and_kinds_can_be_given(csv_file, tmp_path):
    text = "a,b,c\n" + "".join(f"{i % 4},{i % 3},{i % 5}\n" for i in range(60))
    source = csv_file(text)
    found = prepare.prepare(source, tmp_path / "found", target="c")
    assert found.classes == ["0", "1", "2", "3", "4"]
    given = prepare.prepare(
        *(source, tmp_path / "given"),
        target="c",
        problem="regression",
        kinds={"a": "category", "b": "buckets"},
    )
    assert given.classes == []
    assert given.features["x/a"].dtype == "string"
    assert [column.kind for column in columns.from_statistics(given.statistics)] == [
        *("category", "buckets"),
    ]


def test_text_cannot_be_estimated(csv_file, tmp_path):
    source = csv_file("a,b\n" + "1,x\n2,y\n" * 9)
    with pytest.raises(UserError, match=r"line 2, column 'b': 'x' is no finite number"):
        prepare.prepare(source, tmp_path / "data", target="b", problem="regression")


GOOD = "a,b\n" + "1,x\n2,y\n" * 9


@pytest.mark.parametrize(
    ("text", "flags", "parts"),
    [
        (GOOD, [], ["say which column to predict with --target", "'a', 'b'"]),
        (GOOD, ["--target=c"], ["--target=c: ", "table.csv: line 1 has no column 'c'"]),
        (GOOD, ["--target=b", "--columns=c=number"], ["--columns=c=number: ", "no such column"]),
        ("a,b\n1,x\n2,x\n3,x\n", ["--target=b"], ["table.csv: line 2, column 'b': every row"]),
        ("a,a\n1,2\n", ["--target=a"], ["table.csv: line 1, column 2"]),
        ("a,b\n1,2\n1\n", ["--target=a"], ["table.csv: line 3, column 'a'"]),
        ("", ["--target=a"], ["table.csv: line 1: is empty"]),
        ("a,b\n1,\xff\n", ["--target=a"], ["table.csv: line 2, column 2: is not UTF-8"]),
    ],
)
def test_a_mistake_ends_the_command_with_one_line(
    command_line, csv_file, tmp_path, text, flags, parts
):
    source = csv_file(text.encode("latin-1"))
    done = command_line("prepare", f"--source={source}", f"--data_dir={tmp_path}/data", *flags)
    assert_one_line_error(done, *parts)
    assert os.listdir(tmp_path) == ["table.csv"]


def test_the_command_prints_the_counts_last(command_line, tmp_path):
    done = command_line("prepare", f"--data_dir={tmp_path}/data")
    assert done.status == 0, done.err
    assert done.out.splitlines()[-3:] == [
        "train: 106 examples in 4 shards",
        "validation: 22 examples in 1 shard",
        "test: 22 examples in 1 shard",
    ]
    assert json.loads((tmp_path / "data" / "dataset.json").read_text())["source"] == "iris"

"""The bundled example and tables of all sorts: the figures are those of scikit-learn, and the default learns them."""

import csv
import json
import shutil

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, confusion_matrix, log_loss, root_mean_squared_error

from {{ cookiecutter.__package_name }} import prepare
from {{ cookiecutter.__package_name }}.engine import dataset
from {{ cookiecutter.__package_name }}.engine.data import records

from comparing import assert_one_line_error


def result(done):
    assert done.status == 0, done.err
    return json.loads(done.out.splitlines()[-1])


def read(prepared, split):
    """Returns a split, values by feature."""
    reader = records.Reader(prepared.folder, split, prepared.splits[split])
    serialized = reader.read(np.arange(prepared.splits[split].examples))
    batch = records.parse(serialized, prepared.features)
    return {name: values.numpy() for name, values in batch.items()}


def logits(weights, rows):
    """Returns what the network makes of preprocessed rows, in plain numpy from a checkpoint's arrays."""
    h = rows
    for name in ("dense_1", "dense_2", "logits"):
        kernel, bias = (weights[f"inference/{name}/{part}"] for part in ("kernel", "bias"))
        h = h @ kernel.astype(float) + bias
        if name != "logits":
            h /= 1 + np.exp(-h)
    return h


@pytest.mark.parametrize(("split", "batch_size"), [("test", 64), ("validation", 7)])
def test_figures_are_those_of_scikit_learn(
    command_line, trained, tmp_path, checkpoint, prepared, split, batch_size
):
    run = shutil.copytree(trained, tmp_path / "run")
    figures = result(
        command_line(
            *("evaluate", f"--model_dir={run}", f"--split={split}", f"--batch_size={batch_size}")
        )
    )
    values = read(prepared, split)
    y = values["y"]
    rows = np.stack(
        [
            (values[f"x/{column['input']}"] - column["mean"]) / column["stddev"]
            for column in prepared.statistics["columns"]
        ],
        axis=1,
    )
    scores = np.exp(logits(checkpoint(trained, 60), rows))
    probabilities = scores / scores.sum(axis=1, keepdims=True)
    classes = probabilities.argmax(axis=1)
    assert figures["examples"] == len(y)
    assert figures["error"] == pytest.approx(1 - accuracy_score(y, classes), abs=1e-9)
    assert figures["confusion"] == confusion_matrix(y, classes).tolist()
    assert figures["loss"] == pytest.approx(log_loss(y, probabilities), abs=1e-5)


@pytest.fixture(scope="module")
def estimated(tmp_path_factory, run_command):
    """Data with a number to estimate, and the folder of a run on it."""
    folder = tmp_path_factory.mktemp("estimated")
    generator = np.random.default_rng(0)
    lines = ["size,town,built,price"]
    for i in range(400):
        size, town = generator.uniform(20, 200), ["Ulm", "Bonn", '"Köln\n(south)"'][i % 3]
        price = 1000 * size + 50_000 * (i % 3)
        lines.append(f"{size if i % 11 else 'NA'},{town},2024-0{1 + i % 7}-01,{price}")
    (folder / "houses.csv").write_text("\ufeff" + "\n".join(lines) + "\n", encoding="utf-8")
    prepared = prepare.prepare(str(folder / "houses.csv"), folder / "data", target="price")
    arguments = (f"--data_dir={folder / 'data'}", f"--model_dir={folder / 'run'}")
    done = run_command("train", *arguments, "--train_steps=300")
    assert done.status == 0, done.err
    return prepared, folder / "run"


def test_the_error_of_a_regression_is_the_rmse_of_scikit_learn(command_line, estimated, checkpoint):
    prepared, run = estimated
    figures = result(command_line("evaluate", f"--model_dir={run}", "--split=test"))
    values = read(prepared, "test")
    size, town, built = prepared.statistics["columns"]
    is_missing = np.isnan(values["x/size"])
    parts = [np.where(is_missing, 0, (values["x/size"] - size["mean"]) / size["stddev"])[:, None]]
    for column in (size, town, built):  # in their order, after the numbers
        if column is size:
            parts.append(is_missing[:, None].astype(float))
        else:
            texts = [text.decode() for text in values[f"x/{column['input']}"]]
            places = [[text == other for other in column["vocabulary"]] for text in texts]
            parts.append(np.c_[~np.any(places, axis=1), places].astype(float))
    outputs = logits(checkpoint(run, 300), np.concatenate(parts, axis=1))[:, 0]
    predicted = prepared.statistics["mean"] + prepared.statistics["stddev"] * outputs
    expected = root_mean_squared_error(values["y"], predicted)
    assert figures["error"] == pytest.approx(expected, rel=1e-5)
    assert figures["rmse"] == figures["error"]
    assert figures["error"] < 0.6 * np.std(values["y"])


def test_rows_are_predicted_from_the_run_and_from_its_export_alike(
    run_command, estimated, tmp_path
):
    prepared, run = estimated
    run = shutil.copytree(run, tmp_path / "run")
    with (prepared.folder.parent / "houses.csv").open(newline="", encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    with (tmp_path / "new.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, ["built", "town", "size"], extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    done = run_command("export", f"--model_dir={run}")
    assert done.status == 0, done.err
    values = {}
    for name, source in (("run", f"--model_dir={run}"), ("export", f"--export_dir={run}/export/1")):
        output = tmp_path / f"{name}.csv"
        done = run_command("predict", source, f"--input={tmp_path}/new.csv", f"--output={output}")
        assert done.status == 0, done.err
        with output.open(newline="", encoding="utf-8") as file:
            values[name] = [float(row["inference"]) for row in csv.DictReader(file)]
    assert values["run"] == pytest.approx(values["export"], rel=1e-5)
    truth = np.array([float(row["price"]) for row in rows])
    assert root_mean_squared_error(truth, values["run"]) < 0.6 * truth.std()
    (tmp_path / "less.csv").write_text("size,town\n1,Ulm\n")
    less = ("predict", f"--model_dir={run}", f"--input={tmp_path}/less.csv")
    done = run_command(*less, f"--output={tmp_path}/none.csv")
    assert_one_line_error(done, "less.csv: line 1: has no column for the model's input 'built'")


def test_a_number_has_no_class_weights(command_line, estimated, tmp_path):
    arguments = (f"--data_dir={estimated[0].folder}", f"--model_dir={tmp_path}", "--class_weights")
    done = command_line("train", *arguments)
    assert_one_line_error(done, "--class_weights: 'price' is a number and has no classes")


def test_classes_of_text_are_learned_from_a_table(command_line, tmp_path):
    rows = [f"{i % 5},{'red' if i % 2 else 'blue'},{i % 2}\n" for i in range(90)]
    (tmp_path / "t.csv").write_text("n,colour,odd\n" + "".join(rows))
    prepare.prepare(str(tmp_path / "t.csv"), tmp_path / "data", target="odd")
    assert dataset.load(tmp_path / "data").classes == ["0", "1"]
    arguments = (f"--data_dir={tmp_path / 'data'}", f"--model_dir={tmp_path / 'run'}")
    done = command_line("train", *arguments, "--train_steps=200", "--augment")
    assert result(done)["error"] == 0
    assert result(command_line("evaluate", arguments[1], "--split=test"))["error"] == 0


@pytest.mark.parametrize(
    "devices",
    [
        pytest.param("cpu", marks=pytest.mark.slow),
        pytest.param("cpu:2", marks=pytest.mark.release),
    ],
)
def test_the_default_learns_the_flowers(run_command, data_dir, tmp_path, devices):
    arguments = (f"--data_dir={data_dir}", f"--model_dir={tmp_path}/run", f"--devices={devices}")
    assert result(run_command("train", *arguments))["error"] <= 0.05
    done = run_command("evaluate", f"--model_dir={tmp_path}/run", "--split=test")
    assert result(done)["error"] <= 0.05

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image
from sklearn.metrics import (
    accuracy_score,
    confusion_matrix,
    log_loss,
    precision_recall_fscore_support,
)

from {{ cookiecutter.__package_name }} import predict as predicting
from {{ cookiecutter.__package_name }}.engine.examples import open_split
from {{ cookiecutter.__package_name }}.engine.run.checkpoints import save_variables
from {{ cookiecutter.__package_name }}.engine.run.state import DataPosition, State
from {{ cookiecutter.__package_name }}.engine.run.variables import variables_of
from {{ cookiecutter.__package_name }}.model import Model

from comparing import assert_one_line_error


@pytest.fixture(scope="module")
def test_split(prepared):
    """Images and classes of the test split."""
    split = open_split(prepared, "test")
    batch = split.fetch(tf.range(split.examples))
    return batch["x"].numpy(), batch["y"].numpy()


@pytest.fixture(scope="module")
def pictures(test_split, tmp_path_factory):
    """Folder with the test split as PNG files, a class's in a folder of its own."""
    folder = tmp_path_factory.mktemp("pictures")
    for number, (x, y) in enumerate(zip(*test_split, strict=True)):
        path = folder / str(y) / f"{number:03}.png"
        path.parent.mkdir(exist_ok=True)
        Image.fromarray(x[..., 0]).save(path)
    return folder


@pytest.fixture(scope="module")
def run(trained, tmp_path_factory):
    """A trained run that may be written to."""
    return shutil.copytree(trained, tmp_path_factory.mktemp("runs") / "run")


@pytest.fixture(scope="module")
def exported(run, run_command):
    """Folder of the export of the run."""
    done = run_command("export", f"--model_dir={run}")
    assert done.status == 0, done.err
    return Path(done.out.splitlines()[-1])


@pytest.fixture
def predict(command_line, tmp_path):
    """Runs `predict`; returns what it printed last and the rows of its output."""

    def run(*arguments, output="predictions.csv"):
        path = tmp_path / output
        done = command_line("predict", *arguments, f"--output={path}")
        assert done.status == 0, done.err
        printed = json.loads(done.out.splitlines()[-1])
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file) if path.suffix == ".csv" else map(json.loads, file))
        return printed, rows

    return run


def probabilities(row):
    return [float(row[f"inference/{digit}"]) for digit in range(10)]


def test_what_evaluate_prints_is_what_scikit_learn_says_of_what_predict_wrote(
    predict, command_line, run, pictures
):
    _, rows = predict(f"--model_dir={run}", f"--input={pictures}")
    true = [int(Path(row["input"]).parent.name) for row in rows]
    labels = [int(row["label"]) for row in rows]
    done = command_line("evaluate", f"--model_dir={run}", "--split=test")
    metrics = json.loads(done.out.splitlines()[-1])
    precision, recall, f1, _ = precision_recall_fscore_support(true, labels, zero_division=0)
    assert len(rows) == metrics["examples"] == 270
    assert metrics["accuracy"] == pytest.approx(accuracy_score(true, labels), abs=1e-6)
    assert metrics["error"] == pytest.approx(1 - accuracy_score(true, labels), abs=1e-6)
    assert metrics["precision"] == pytest.approx(precision, abs=1e-6)
    assert metrics["recall"] == pytest.approx(recall, abs=1e-6)
    assert metrics["f1"] == pytest.approx(f1, abs=1e-6)
    assert metrics["confusion"] == confusion_matrix(true, labels).tolist()
    rounded = np.array([probabilities(row) for row in rows])
    assert metrics["loss"] == pytest.approx(log_loss(true, rounded), abs=1e-6)


@pytest.mark.slow
def test_an_export_predicts_what_its_run_predicts(predict, run, exported, pictures, prepared):
    printed, rows = predict(f"--model_dir={run}", f"--input={pictures}", "--batch_size=100")
    assert (printed["examples"], printed["left_out"]) == (270, 0)
    _, others = predict(f"--export_dir={exported}", f"--input={pictures}", output="b.jsonl")
    newest, _ = predict(f"--export_dir={exported.parent}", f"--input={pictures}/7")
    assert newest["examples"] == sum(Path(row["input"]).parent.name == "7" for row in rows)
    for row, other in zip(rows, others, strict=True):
        assert (row["input"], row["label"]) == (other["input"], other["label"])
        assert list(other["inference"]) == prepared.classes
        assert probabilities(row) == pytest.approx(list(other["inference"].values()), abs=1e-6)


def test_examples_are_predicted_from_python_as_by_the_command(predict, run, pictures, tmp_path):
    printed, rows = predict(f"--model_dir={run}", f"--input={pictures}/7", "--checkpoint=best")
    settings = {"input": [f"{pictures}/7"], "output": str(tmp_path / "python.csv")}
    found = predicting.predict(model_dir=str(run), checkpoint="best", **settings)
    assert found["examples"] == printed["examples"] == len(rows)
    assert (tmp_path / "python.csv").read_bytes() == (tmp_path / "predictions.csv").read_bytes()


def test_files_patterns_and_lists_are_taken_in_the_order_given(predict, run, pictures, tmp_path):
    first, second, *_ = sorted(pictures.glob("3/*.png"))
    listed = tmp_path / "list.csv"
    shutil.copy(second, tmp_path / "copied.png")
    listed.write_text("note,input\none,copied.png\n,\n")
    _, rows = predict(
        *(f"--model_dir={run}", f"--input={second}", f"--input={pictures}/3/{first.name[:2]}*.png"),
        f"--input={listed}",
    )
    names = [row["input"] for row in rows]
    pattern = sorted(map(str, pictures.glob(f"3/{first.name[:2]}*.png")))
    assert names == [str(second), *pattern, str(tmp_path / "copied.png")]
    assert probabilities(rows[0]) == probabilities(rows[-1])


def test_a_picture_of_another_mode_and_size_is_made_like_those_of_training(
    predict, run, test_split, tmp_path
):
    x, _ = test_split
    grey = Image.fromarray(x[0, ..., 0])
    grey.save(tmp_path / "a.png")
    for name, mode in (("b", "RGB"), ("c", "RGBA"), ("d", "P")):
        grey.convert(mode).save(tmp_path / f"{name}.png")
    grey.resize((80, 40), Image.Resampling.NEAREST).save(tmp_path / "e.png")
    _, rows = predict(f"--model_dir={run}", f"--input={tmp_path}")
    assert len(rows) == 5
    for row in rows[:-1]:
        assert probabilities(row) == pytest.approx(probabilities(rows[0]), abs=1e-6)


@pytest.fixture
def exported_as(tmp_path):
    """Writes an export that predicts any function of pixels, and returns its folder."""

    def write(inference):
        spec = tf.TensorSpec([None, 8, 8, 1], tf.uint8, name="x")
        module = tf.Module()
        module.served = tf.function(
            lambda x: {"inference": inference(tf.cast(x[..., 0], tf.float32))}, [spec]
        )
        folder = tmp_path / "exported"
        tf.saved_model.save(module, str(folder), signatures={"serving_default": module.served})
        described = {"inputs": {"x": {"dtype": "uint8", "shape": [None, 8, 8, 1]}}, "classes": []}
        (folder / "signature.json").write_text(json.dumps({**described, "outputs": {}}))
        return folder

    return write


@pytest.mark.parametrize(
    ("inference", "columns"),
    [
        (lambda pixels: tf.reduce_mean(pixels, axis=[1, 2]), ["inference"]),
        (lambda pixels: pixels[:, 0, :1], ["inference"]),
        (lambda pixels: pixels[:, 0], [f"inference/{i}" for i in range(8)]),
        (lambda pixels: pixels, [f"inference/{i}/{j}" for i in range(8) for j in range(8)]),
    ],
    ids=["a number", "a vector of one", "a vector", "an array"],
)
def test_numbers_and_arrays_are_written_whole(
    predict, exported_as, pictures, test_split, inference, columns
):
    export = exported_as(inference)
    arguments = (f"--export_dir={export}", f"--input={pictures}/0/*.png")
    _, rows = predict(*arguments)
    _, records = predict(*arguments, output="p.jsonl")
    zeros = [x for x, y in zip(*test_split, strict=True) if y == 0]
    expected = inference(tf.constant(np.array(zeros)[..., 0], tf.float32)).numpy()
    assert len(rows) == len(records) == len(zeros)
    for row, record, values in zip(rows, records, expected, strict=True):
        assert list(row) == ["input", *columns]
        written = [float(row[column]) for column in columns]
        assert written == pytest.approx(values.reshape(-1).tolist())
        assert list(record) == ["input", "inference"]
        whole = values.tolist() if values.size > 1 else values.item()
        assert np.array(record["inference"]) == pytest.approx(np.array(whole))


@pytest.fixture
def with_bad_file(pictures, tmp_path):
    """Folder with two good pictures, and a file between them that is none."""
    folder = tmp_path / "mixed"
    folder.mkdir()
    for name, source in zip("ac", sorted(pictures.glob("5/*.png")), strict=False):
        shutil.copy(source, folder / f"{name}.png")
    (folder / "b.png").write_bytes(b"\x89PNG is what it says")
    return folder


def test_a_bad_file_is_reported_and_the_rest_goes_on(predict, run, with_bad_file, caplog):
    printed, rows = predict(f"--model_dir={run}", f"--input={with_bad_file}", "--batch_size=1")
    assert (printed["examples"], printed["left_out"]) == (2, 1)
    assert [Path(row["input"]).name for row in rows] == ["a.png", "c.png"]
    assert f"left out: {with_bad_file}/b.png: cannot be read as an image" in caplog.text


def test_with_strict_a_bad_file_ends_it_and_what_was_written_before_stays(
    command_line, run, with_bad_file, tmp_path
):
    output = tmp_path / "predictions.csv"
    output.write_text("of last week\n")
    arguments = (f"--model_dir={run}", f"--input={with_bad_file}", f"--output={output}")
    done = command_line("predict", *arguments, "--strict")
    assert_one_line_error(done, f"{with_bad_file}/b.png: cannot be read as an image")
    assert output.read_text() == "of last week\n"
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["predictions.csv"]


def test_only_bad_files_are_an_error(command_line, run, with_bad_file, tmp_path):
    done = command_line(
        "predict",
        *(f"--model_dir={run}", f"--input={with_bad_file}/b.png", f"--output={tmp_path}/p.csv"),
    )
    assert_one_line_error(done, "none of the inputs can be read")
    assert not (tmp_path / "p.csv").exists()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], "--input is missing"),
        (["--input={tmp}/none.png"], "no such file"),
        (["--input={tmp}/none*.png"], "no such file"),
        (["--input={tmp}/empty"], "holds no .png or .jpg or .jpeg file"),
        (["--input={tmp}/list.csv"], "has no column 'input', only ['file', 'note']"),
        (["--input={tmp}/nothing.csv"], "lists no image"),
        (["--input={tmp}/binary.csv"], "is no table"),
    ],
)
def test_inputs_that_are_none_are_told_in_one_line(command_line, run, tmp_path, given, expected):
    (tmp_path / "empty").mkdir()
    (tmp_path / "list.csv").write_text("file,note\na.png,\n")
    (tmp_path / "nothing.csv").write_text("input\n")
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00")
    arguments = [argument.format(tmp=tmp_path) for argument in given]
    done = command_line("predict", f"--model_dir={run}", f"--output={tmp_path}/p.csv", *arguments)
    assert_one_line_error(done, expected)


@pytest.mark.slow
@pytest.mark.parametrize("what", ["saved_model.pb", "variables/variables.index", "signature.json"])
@pytest.mark.parametrize("how", ["missing", "half"])
def test_an_export_that_is_not_whole_is_refused(
    command_line, exported, pictures, tmp_path, what, how
):
    export = shutil.copytree(exported, tmp_path / "export")
    contents = (export / what).read_bytes()
    (export / what).unlink()
    if how == "half":
        (export / what).write_bytes(contents[: len(contents) // 2])
    arguments = (f"--input={pictures}", f"--output={tmp_path}/p.csv")
    done = command_line("predict", f"--export_dir={export}", *arguments)
    assert_one_line_error(done, f"--export_dir={export}: ")
    assert not (tmp_path / "p.csv").exists()


@pytest.mark.slow
def test_an_export_of_another_project_is_refused(command_line, exported, pictures, tmp_path):
    export = shutil.copytree(exported, tmp_path / "export")
    signature = json.loads((export / "signature.json").read_text())
    signature["inputs"] = {"age": {"dtype": "float32", "shape": [None]}}
    (export / "signature.json").write_text(json.dumps(signature))
    done = command_line(
        "predict",
        *(f"--export_dir={export}", f"--input={pictures}", f"--output={tmp_path}/p.csv"),
    )
    assert_one_line_error(done, "the model is of another project", "age")


def test_a_run_of_another_project_is_refused(command_line, run, pictures, tmp_path):
    other = shutil.copytree(run, tmp_path / "other")
    shutil.rmtree(other / "checkpoints")
    state = State(DataPosition("", examples=1, batch_size=1, seed=0)).to_json()
    variables = {**variables_of(Model(classes=3)), "state": tf.Variable(state)}
    save_variables(other / "checkpoints" / "ckpt-1", variables)
    arguments = (f"--input={pictures}", f"--output={tmp_path}/p.csv")
    done = command_line("predict", f"--model_dir={other}", *arguments)
    assert_one_line_error(done, "belongs to another model", "inference/logits/kernel is [128, 3]")

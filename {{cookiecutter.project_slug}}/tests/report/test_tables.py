from {{ cookiecutter.__package_name }}.report import tables

METRICS = {
    "split": "test",
    "global_step": 60,
    "loss": 0.5,
    "error": 0.25,
    "precision": [1.0, 0.5],
    "recall": [0.75, 1.0],
    "f1": [6 / 7, 2 / 3],
    "confusion": [[3, 1], [0, 1]],
}


def cells(table):
    return [line.split() for line in table.splitlines() if not set(line) <= set("- ")]


def test_every_class_has_a_row_and_the_means_come_last():
    assert cells(tables.of_classes(METRICS, ["1e5", "owl"])) == [
        ["class", "precision", "recall", "f1", "examples"],
        ["1e5", "1.0000", "0.7500", "0.8571", "4"],
        ["owl", "0.5000", "1.0000", "0.6667", "1"],
        ["mean", "of", "the", "classes", "0.7500", "0.8750", "0.7619", "5"],
    ]


def test_a_regression_has_no_table_of_classes():
    assert tables.of_classes({"rmse": 0.5}, []) == ""


def test_runs_stand_side_by_side():
    table = tables.of_runs({"runs/1": METRICS, "runs/2": {"loss": 1.0, "rmse": 2.0}})
    assert cells(table) == [
        ["global_step", "loss", "error", "rmse"],
        ["runs/1", "60", "0.5000", "0.2500", "-"],
        ["runs/2", "-", "1.0000", "-", "2.0000"],
    ]


def test_names_are_text_on_a_page():
    page = tables.of_classes(METRICS, ["<b>", "owl"], form="html")
    assert "<td>&lt;b&gt;" in page

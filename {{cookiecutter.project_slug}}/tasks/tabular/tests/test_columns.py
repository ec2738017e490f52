import numpy as np
import pytest

from {{ cookiecutter.__package_name }} import columns, target
from {{ cookiecutter.__package_name }}.engine.errors import UserError
from {{ cookiecutter.__package_name }}.sources import Table


def table(**cells):
    """A table of these columns."""
    rows = [list(row) for row in zip(*cells.values(), strict=True)]
    return Table("t.csv", "dir/t.csv", list(cells), rows, list(range(2, len(rows) + 2)))


def kind(*cells):
    """The kind that is found for a column of these cells, and why it is ignored."""
    anything = [str(i) for i in range(len(cells))]
    kinds, reasons = columns.find_kinds(table(a=cells, b=anything, y=anything), "y", {})
    return kinds["a"], reasons.get("a", "")


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1", "-2.5", "+.5", "1e-3", " 4 "], "number"),
        (["1", "", "NA", "?", "nan", "None", "2"], "number"),
        (["red", "blue", "red", ""], "category"),
        (["2024-01-31", "2024-01-31", "2024-02-01"], "category"),
        (["True", "False", "True"], "category"),
        (["1_000", "1_000", "2"], "category"),
    ],
)
def test_a_column_is_what_its_cells_look_like(cells, expected):
    assert kind(*cells) == (expected, "")


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        (["7", "7", "7"], "is the same in every row"),
        (["", "NA", "?"], "is missing in every row"),
        (["ann", "bob", "zoë"], "is a text that differs in every row"),
    ],
)
def test_a_column_that_tells_nothing_is_ignored_with_the_reason(cells, reason):
    assert kind(*cells) == ("ignore", reason)


def test_a_text_among_numbers_is_taken_for_a_mistake():
    cells = [*map(str, range(19)), "12a"]
    with pytest.raises(
        UserError, match=r"dir/t\.csv: line 21, column 'a': '12a' is no number.*cat"
    ):
        kind(*cells)


def test_kinds_that_are_given_are_taken():
    given = {"a": "category", "b": "buckets"}
    kinds, _ = columns.find_kinds(table(a="112", b="123", c="123", y="123"), "y", given)
    assert kinds == {"a": "category", "b": "buckets", "c": "number"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"z": "number"}, r"--columns=z=number: dir/t\.csv has no such column; there are 'a', 'b'"),
        ({"y": "number"}, "--columns=y=number: is the target"),
        ({"a": "date"}, "--columns=a=date: is none of number, buckets, category, ignore"),
        ({"a": "ignore", "b": "ignore"}, "no column is left to predict 'y' from"),
    ],
)
def test_kinds_that_cannot_be_are_refused(given, message):
    with pytest.raises(UserError, match=message):
        columns.find_kinds(table(a="12", b="34", y="56"), "y", given)


def test_numbers_are_read_and_missing_ones_are_not_a_number():
    values = columns.numbers(table(a=["1.5", "", "NaN", " -3e2 "]), "a")
    assert values.dtype == np.float32
    np.testing.assert_array_equal(values, np.array([1.5, np.nan, np.nan, -300], np.float32))


@pytest.mark.parametrize("cell", ["inf", "1e39", "x", "1,5", "0x10"])
def test_what_is_no_finite_number_is_refused_with_its_place(cell):
    with pytest.raises(UserError, match=r"dir/t\.csv: line 3, column 'a': .* is no finite number"):
        columns.numbers(table(a=["1", cell]), "a")


def described(kind, values):
    (column,) = columns.describe_all({"a": kind}, {"a": values})
    return column


def test_statistics_of_numbers_are_those_of_the_ones_that_are_there():
    column = described("number", np.array([1, 2, np.nan, 6], np.float32))
    assert (column.mean, column.stddev) == pytest.approx((3.0, np.std([1, 2, 6])))
    assert column.has_missing
    assert not described("number", np.array([1, 2], np.float32)).has_missing


@pytest.mark.parametrize("value", [5, np.nan])
def test_numbers_that_do_not_vary_have_a_deviation_of_one(value):
    assert described("number", np.full(3, value, np.float32)).stddev == 1.0


def test_boundaries_share_the_numbers_out_evenly():
    values = np.random.default_rng(0).exponential(size=1000).astype(np.float32)
    counts = np.histogram(values, [-np.inf, *described("buckets", values).boundaries, np.inf])[0]
    assert counts.tolist() == [100] * 10
    assert described("buckets", np.array([1, 1, 1], np.float32)).boundaries == (1.0,)


def test_the_vocabulary_holds_repeated_texts_the_most_frequent_first():
    texts = np.array(["b", "a", "b", "c", "", "", "a", "b"], object)
    assert described("category", texts).vocabulary == ("b", "", "a")
    assert described("category", np.array(["b", "a"], object)).vocabulary == ("a", "b")
    many = np.repeat([f"{i:04}" for i in range(1500)], 2).astype(object)
    assert described("category", many).vocabulary == tuple(f"{i:04}" for i in range(1000))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *(("sepal length (cm)", "sepal_length_cm"), ("Höhe", "hohe"), ("a.b/c", "a_b_c")),
        *(("x", "column_x"), ("loss", "column_loss"), ("1st", "column_1st")),
        *(("年齢", "column_3071041828"), ("_", "column_701932520")),
    ],
)
def test_inputs_have_names_that_a_graph_can_have(name, expected):
    assert columns.input_name(name) == expected


def test_columns_that_would_be_the_same_input_are_refused():
    message = r"line 1, column 'A-b': is too like 'a b', both would be the input 'a_b'"
    with pytest.raises(UserError, match=message):
        columns.find_kinds(table(**{"a b": "12", "A-b": "34", "y": "56"}), "y", {})
    given = {"A-b": "ignore"}
    columns.find_kinds(table(**{"a b": "12", "A-b": "34", "y": "56"}), "y", given)


@pytest.mark.parametrize(
    ("cells", "problem"),
    [
        (["yes", "no", "yes"], "classification"),
        (["0", "1", "2"], "classification"),
        (["1.0", "2.0"], "classification"),
        (["1.5", "2.0"], "regression"),
        ([str(i) for i in range(21)], "regression"),
        ([str(i) for i in range(20)], "classification"),
        (["1.5", ""], "classification"),
    ],
)
def test_the_problem_follows_from_the_target(cells, problem):
    assert target.find_problem(table(y=cells), "y") == problem


def test_classes_are_in_the_order_of_numbers_or_of_the_alphabet():
    labels, classes = target.read_labels(table(y=["10", "9", "10"] * 3), "y", "classification")
    assert classes == ["9", "10"]
    assert labels.tolist() == [1, 0, 1] * 3
    labels, classes = target.read_labels(table(y=["no", " yes", "no"] * 3), "y", "classification")
    assert classes == ["no", "yes"]
    assert labels.dtype == np.int64


def test_numbers_to_predict_are_as_they_are():
    labels, classes = target.read_labels(table(y=["1.5", "2", "4"]), "y", "regression")
    assert labels.tolist() == [1.5, 2.0, 4.0]
    assert labels.dtype == np.float32
    assert classes == []


@pytest.mark.parametrize(
    ("cells", "problem", "message"),
    [
        (["a", "a", "a"], "classification", "line 2, column 'y': every row has 'a'"),
        (["1", "1", "1"], "regression", "line 2, column 'y': every row has '1'"),
        (["a", "b"], "classification", r"line 3, column 'y': the table ends after 2 row\(s\)"),
        ([*"aaabbb", ""], "classification", "line 8, column 'y': there is no class"),
        ([*"aaabbb", "c\nd"], "classification", "line 8, column 'y': 'c.*' is not one line"),
        ([*"aaacbbb"], "classification", r"line 5, column 'y': the class 'c' has 1 row\(s\)"),
        (["1", "2", ""], "regression", "line 4, column 'y': there is no number"),
        (["1", "2", "NA"], "regression", "line 4, column 'y': 'NA' is no finite number"),
        (["1", "2", "b"], "regression", "line 4, column 'y': 'b' is no finite number"),
    ],
)
def test_a_target_that_cannot_be_learned_is_refused_with_its_place(cells, problem, message):
    with pytest.raises(UserError, match=rf"dir/t\.csv: {message}"):
        target.read_labels(table(y=cells), "y", problem)


def test_classes_that_are_rare_weigh_more():
    statistics = target.describe(np.array([0, 0, 0, 1]), 2)
    assert statistics == {"class_weights": pytest.approx([4 / 6, 2.0])}


def test_a_number_to_predict_has_a_mean_and_a_deviation():
    values = np.array([1, 2, 6], np.float32)
    assert target.describe(values, 0) == pytest.approx({"mean": 3.0, "stddev": np.std([1, 2, 6])})

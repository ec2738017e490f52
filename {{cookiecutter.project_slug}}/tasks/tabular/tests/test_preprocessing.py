import numpy as np
import pytest
import tensorflow as tf

from {{ cookiecutter.__package_name }}.columns import Column
from {{ cookiecutter.__package_name }}.preprocessing import Preprocessing

AGE = Column("Age", "age", "number", mean=40.0, stddev=10.0, has_missing=True)
HEIGHT = Column("Height", "height", "number", mean=1.5, stddev=0.5)
INCOME = Column("Income", "income", "buckets", boundaries=(10.0, 20.0))
TOWN = Column("Town", "town", "category", vocabulary=("Ulm", "", "Köln, \n'Süd'"))
COLUMNS = (AGE, TOWN, HEIGHT, INCOME)

X = {
    "age": [30.0, np.nan, 60.0, 40.0],
    "height": [2.0, 1.0, np.nan, 1.5],
    "income": [-5.0, 10.0, 99.0, np.nan],
    "town": ["Köln, \n'Süd'", "", "Bonn", "Ulm"],
}


def rows(columns, **x):
    tensors = {k: tf.constant(v, tf.string if k == "town" else tf.float32) for k, v in x.items()}
    return Preprocessing(columns)(tensors).numpy()


def test_rows_are_the_ones_written_by_hand():
    expected = [
        # height and age standardised, then in the order of the columns: is age missing, town, income
        [-1, 1, 0, 0, 0, 0, 1, 1, 0, 0],
        [0, -1, 1, 0, 0, 1, 0, 0, 1, 0],
        [2, 0, 0, 1, 0, 0, 0, 0, 0, 1],
        [0, 0, 0, 0, 1, 0, 0, 0, 0, 0],
    ]
    got = rows(COLUMNS, **X)
    assert got.dtype == np.float32
    assert got == pytest.approx(np.array(expected), abs=1e-6)


def test_the_width_is_known_before_the_first_row():
    assert Preprocessing(COLUMNS).width == 10
    assert Preprocessing([TOWN]).width == 4
    assert Preprocessing([HEIGHT]).width == 1


def test_a_column_alone_is_enough():
    assert rows([TOWN], town=["Ulm"]).tolist() == [[0, 1, 0, 0]]
    assert rows([INCOME], income=[15.0]).tolist() == [[0, 1, 0]]


def test_columns_that_are_not_described_are_passed_over():
    assert rows([HEIGHT], height=[2.0], income=[1.0]).tolist() == [[1]]


def test_rows_from_a_loaded_export_are_the_same(tmp_path):
    exported = tf.Module()
    exported.preprocessing = Preprocessing(COLUMNS)
    spec = {
        c.input: tf.TensorSpec([None], tf.string if c.is_text else tf.float32, name=c.input)
        for c in COLUMNS
    }
    exported.rows = tf.function(exported.preprocessing, input_signature=[spec])
    tf.saved_model.save(exported, str(tmp_path), signatures=exported.rows)
    loaded = tf.saved_model.load(str(tmp_path))
    x = {k: tf.constant(v, tf.string if k == "town" else tf.float32) for k, v in X.items()}
    np.testing.assert_array_equal(loaded.rows(x), rows(COLUMNS, **X))
    (served,) = loaded.signatures["serving_default"](**x).values()
    np.testing.assert_array_equal(served, rows(COLUMNS, **X))

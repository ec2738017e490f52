import codecs

import pytest
from sklearn.datasets import load_iris

from {{ cookiecutter.__package_name }} import sources
from {{ cookiecutter.__package_name }}.engine.errors import UserError


@pytest.fixture
def table(tmp_path):
    """Reads a CSV file with this text, or these bytes."""

    def read(contents):
        path = tmp_path / "table.csv"
        path.write_bytes(contents if isinstance(contents, bytes) else contents.encode())
        return sources.read_csv(str(path))

    return read


def test_iris_is_that_of_scikit_learn():
    iris, bundled = sources.iris(), load_iris()
    assert iris.header == [*bundled.feature_names, "species"]
    assert [[float(cell) for cell in row[:4]] for row in iris.rows] == bundled.data.tolist()
    assert iris.column("species") == bundled.target_names[bundled.target].tolist()


def test_cells_are_as_they_stand_in_the_file_with_the_lines_that_they_begin_on(table):
    text = 'name,note\n"Zoë, ""Z""","two\nlines"\n\n  x ,\r\n'
    read = table(codecs.BOM_UTF8 + text.encode())
    assert read.header == ["name", "note"]
    assert read.rows == [['Zoë, "Z"', "two\nlines"], ["  x ", ""]]
    assert read.lines == [2, 5]
    assert read.place(1, "note").endswith("table.csv: line 5, column 'note'")


def test_names_of_columns_lose_the_spaces_around_them(table):
    assert table(" a , b\n1,2\n").header == ["a", "b"]


BAD = {
    "an empty file": ("", "line 1: is empty"),
    "only a byte-order mark": (codecs.BOM_UTF8, "line 1: is empty"),
    "only a header": ("a,b\n", "line 2: there are no rows .*'a'"),
    "a short row": ("a,b,c\n1,2,3\n1,2\n", "line 3, column 'b': the row ends after 2 cells"),
    "a long row": ("a,b\n1,2\n3,4,5\n", "line 3, column 'b': the row goes on to 3 cells"),
    "a short row below quoted lines": ('a,b\n"1\n1",2\n3\n', "line 4, column 'a'"),
    "two columns of one name": ("a,b,a\n1,2,3\n", "line 1, column 3: is called 'a' like column 1"),
    "a column without a name": ("a,,c\n1,2,3\n", "line 1, column 2: has no name"),
    "a name of two lines": ('a,"b\nc"\n1,2\n', r"line 1, column 2: the name 'b\\nc' is not"),
    "one column": ("a\n1\n", "line 1, column 1: is the only column, 'a'"),
    "semicolons": ("a;b\n1;2\n", "line 1, column 1: .* separated by commas, not ';'"),
    "tabs": ("a\tb\n1\t2\n", r"line 1, column 1: .* separated by commas, not '\\t'"),
    "Latin-1": ("a,b\n1,2\nx,é\n".encode("latin-1"), r"line 3, column 2: is not UTF-8 \(byte 0xe9"),
    "UTF-16": ("a,b\n1,2\n".encode("utf-16"), r"line 1, column 1: is not UTF-8 \(byte 0xff"),
    "a zero byte": ("a,b\n1,2\n3,\0\n", "line 3: holds a zero byte"),
    "an open quote": ('a,b\n1,2\n3,"4\n5,6\n', "line 3: unexpected end of data"),
    "a quote in a quoted cell": ('a,b\n1,"2"3"\n', "line 2: .*doubled"),
    "an endless cell": ("a,b\n1,2\n3," + "x" * 200_000 + "\n", "line 3: field larger than"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_refused_with_file_line_and_column(table, name):
    contents, message = BAD[name]
    with pytest.raises(UserError, match=rf"table\.csv: {message}") as caught:
        table(contents)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("name", "problem"), [("none.csv", "no such file"), ("", "is a folder")])
def test_what_is_no_file_is_refused(tmp_path, name, problem):
    with pytest.raises(UserError, match=f"--source={tmp_path / name}: {problem}"):
        sources.open_table(str(tmp_path / name))

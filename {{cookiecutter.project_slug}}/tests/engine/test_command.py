import io
import re

import pytest
import tensorflow as tf
from absl import flags as absl_flags

from {{ cookiecutter.__package_name }} import flags
from {{ cookiecutter.__package_name }}.engine import command
from {{ cookiecutter.__package_name }}.engine.errors import UserError


@pytest.fixture
def run_main(monkeypatch, capfd, saved_flags):
    """Runs a function as a command; returns its exit status and what it wrote to standard error."""

    def run(main, *arguments, key_flags=flags.TRAIN):
        monkeypatch.setattr("sys.argv", ["command", *arguments])
        absl_flags.FLAGS.unparse_flags()
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            command.run(main, key_flags)
        err = capfd.readouterr().err
        # TensorFlow's first words on a machine without a GPU
        return ended.value.code or 0, re.sub(r"^[EW]0000 .*\n", "", err, flags=re.MULTILINE)

    return run


def raising(error):
    def main(_):
        raise error

    return main


def test_the_status_of_a_command_is_what_it_returns(run_main):
    assert run_main(lambda _: None) == (0, "")
    assert run_main(lambda _: 42) == (42, "")


def test_a_users_mistake_is_one_line_and_status_1(run_main):
    assert run_main(raising(UserError("--a=b: c"))) == (1, "error: --a=b: c\n")


def test_a_name_with_line_breaks_does_not_break_the_line(run_main):
    error = UserError("images/a\n1.png: cannot be read\r\nreplace it")
    assert run_main(raising(error)) == (
        1,
        "error: images/a 1.png: cannot be read replace it\n",
    )


def test_names_of_tensorflows_own_parts_are_left_out(run_main):
    node = "{" * 2 + "function_node __wrapped__A_device_/b:0" + "}" * 2
    error = UserError(f"f: ({node} No space [Op:A] name: ); go")
    assert run_main(raising(error)) == (1, "error: f: (No space); go\n")


def test_a_name_that_cannot_be_encoded_is_escaped(run_main, monkeypatch):
    streams = {name: io.TextIOWrapper(io.BytesIO(), "ascii") for name in ("stdout", "stderr")}
    for name, stream in streams.items():
        monkeypatch.setattr(f"sys.{name}", stream)

    def main(_):
        print("passed over \udcff.txt")
        raise UserError("ünï/\udcff.png: cannot be read")

    assert run_main(main)[0] == 1
    for stream in streams.values():
        stream.flush()
    assert streams["stdout"].buffer.getvalue() == b"passed over \\udcff.txt\n"
    assert streams["stderr"].buffer.getvalue() == (
        b"error: \\xfcn\\xef/\\udcff.png: cannot be read\n"
    )


def test_an_error_of_the_file_system_names_the_file(run_main, tmp_path):
    def main(_):
        (tmp_path / "none" / "file").write_text("")

    assert run_main(main) == (1, f"error: {tmp_path}/none/file: No such file or directory\n")


def test_a_users_mistake_found_in_an_input_pipeline_is_one_line_too(run_main):
    def fetch(_):
        raise UserError("data/train-00000-of-00001.tfrecord: record 3 is corrupt; prepare it again")

    def main(_):
        numbers = tf.data.Dataset.range(3)
        list(numbers.map(lambda n: tf.numpy_function(fetch, [n], tf.int64)))

    status, err = run_main(main)
    assert status == 1
    message = "data/train-00000-of-00001.tfrecord: record 3 is corrupt; prepare it again"
    assert f"error: {message}\n" in err
    assert "Traceback" not in err.rpartition("error: ")[2]


@pytest.mark.parametrize("error", [ValueError("a bug"), OSError("of no file"), KeyError("x")])
def test_any_other_error_keeps_its_traceback(monkeypatch, saved_flags, error):
    monkeypatch.setattr("sys.argv", ["command"])
    absl_flags.FLAGS.unparse_flags()
    with pytest.raises(type(error)):
        command.run(raising(error), flags.TRAIN)


def test_an_argument_that_is_no_flag_is_refused(run_main):
    status, err = run_main(lambda _: None, "batch_size=3")
    assert status == 1
    assert err == "error: unexpected argument 'batch_size=3': options are written --name=value\n"


def parsed(*arguments):
    absl_flags.FLAGS.unparse_flags()
    absl_flags.FLAGS(["command", *arguments])


def test_flags_that_are_written_repeat_themselves(saved_flags, tmp_path):
    given = ("--deterministic", "--learning_rate=1e-05", "--epochs=0.25", "--model_dir=a b/ü")
    parsed(*given)
    command.write_flags(str(tmp_path), flags.TRAIN)
    before = {holder.name: holder.value for holder in flags.TRAIN}
    for holder in flags.TRAIN:
        absl_flags.FLAGS[holder.name].unparse()
    parsed(f"--flagfile={tmp_path}/flags.txt")
    assert {holder.name: holder.value for holder in flags.TRAIN} == before
    assert flags.DETERMINISTIC.value is True
    assert flags.TRAIN_STEPS.value is None


def test_lists_survive_being_written_twice(saved_flags, tmp_path):
    for _ in range(2):
        parsed("--warm_start_from=run", "--warm_start_include=a/.*", "--warm_start_include=b")
        command.write_flags(str(tmp_path), flags.TRAIN)
    absl_flags.FLAGS["warm_start_include"].unparse()
    parsed(f"--flagfile={tmp_path}/flags.txt")
    assert flags.WARM_START_INCLUDE.value == ["a/.*", "b"]


def test_what_has_changed_since_the_flags_were_written_is_told(saved_flags, tmp_path):
    parsed("--nodeterministic", "--batch_size=32")
    assert command.changed_flags(str(tmp_path), flags.TRAIN) == {}
    command.write_flags(str(tmp_path), flags.TRAIN)
    assert command.changed_flags(str(tmp_path), flags.TRAIN) == {}
    parsed("--deterministic", "--batch_size=32", "--epochs=3")
    assert command.changed_flags(str(tmp_path), flags.TRAIN) == {
        "deterministic": ["--nodeterministic", "--deterministic"],
        "epochs": ["", "--epochs=3.0"],
    }


def test_the_flags_of_a_run_are_taken_over_except_those_given(saved_flags, tmp_path):
    (tmp_path / "flags.txt").write_text(
        "--batch_size=16\n--nolog_device_placement\n--deterministic\n--seed=5\n--gone=1\n"
    )
    parsed("--batch_size=8")
    command.read_flags_of_run(str(tmp_path))
    assert (flags.BATCH_SIZE.value, flags.SEED.value) == (8, 5)
    assert (flags.LOG_DEVICE_PLACEMENT.value, flags.DETERMINISTIC.value) == (False, True)


def test_an_old_run_is_repeated_without_flags_that_no_longer_exist(run_main, tmp_path, caplog):
    path = tmp_path / "flags.txt"
    path.write_text("# old\n--seed=1\n--gone=1\n--gone=2\n--warm_start_include=a b\n--batch_size=6")
    seen = []

    def main(_):
        seen.append((flags.BATCH_SIZE.value, flags.SEED.value, flags.WARM_START_INCLUDE.value))

    arguments = (f"--flagfile={path}", "--batch_size=8", "--warm_start_from=a")
    status, _ = run_main(main, *arguments)
    assert status == 0
    assert seen == [(8, 1, ["a b"])]
    assert caplog.text.count("flag --gone no longer exists and is left out") == 1


def test_a_flag_that_does_not_exist_is_refused_in_any_other_flag_file(run_main, tmp_path):
    (tmp_path / "preset.txt").write_text("--batch_sise=16\n")
    status, err = run_main(lambda _: None, f"--flagfile={tmp_path}/preset.txt")
    assert status == 1
    assert "Unknown command line flag 'batch_sise'" in err


def test_a_flag_file_may_hold_comments_and_empty_lines(saved_flags, tmp_path, caplog):
    (tmp_path / "flags.txt").write_text("# why\n\n--batch_size=16\n")
    parsed()
    command.read_flags_of_run(str(tmp_path))
    assert flags.BATCH_SIZE.value == 16
    assert "no longer exists" not in caplog.text


def test_a_flag_file_that_is_not_text_is_named(saved_flags, tmp_path):
    (tmp_path / "flags.txt").write_bytes(b"--batch_size=16\n\xff")
    parsed()
    for use in (
        lambda: command.read_flags_of_run(str(tmp_path)),
        lambda: command.changed_flags(str(tmp_path), flags.TRAIN),
    ):
        with pytest.raises(UserError, match=rf"{tmp_path}/flags\.txt: damaged"):
            use()


def test_a_folder_that_is_no_run_is_refused(saved_flags, tmp_path):
    parsed()
    with pytest.raises(UserError, match=r"--model_dir=.*: no flags\.txt there"):
        command.read_flags_of_run(str(tmp_path))


def test_the_result_is_one_line_of_json(capsys):
    command.print_result({"global_step": 3, "loss": 0.5})
    assert capsys.readouterr().out == '{"global_step": 3, "loss": 0.5}\n'

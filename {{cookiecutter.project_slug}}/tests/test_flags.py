import ast
import re
from inspect import signature
from pathlib import Path

import pytest
from absl import flags as absl_flags

from {{ cookiecutter.__package_name }} import flags, task_flags
from {{ cookiecutter.__package_name }}.engine import options
from {{ cookiecutter.__package_name }}.model import Model

COMMANDS = {
    name: getattr(flags, name.upper())
    for name in ("prepare", "train", "evaluate", "predict", "export")
}
HOLDERS = {
    name: holder
    for name, holder in {**vars(flags), **vars(task_flags)}.items()
    if isinstance(holder, absl_flags.FlagHolder)
}
FLAGS = {holder.name: absl_flags.FLAGS[holder.name] for holder in HOLDERS.values()}
ROOT = Path(flags.__file__).parents[2]


@pytest.mark.parametrize("name", FLAGS)
def test_every_flag_says_in_a_sentence_what_it_is_for(name):
    text = re.sub(r"^<.*?>: |;\n.*", "", FLAGS[name].help)  # what absl adds
    assert re.match(r"[A-Z`]", text), text
    assert text.endswith("."), text
    assert len(text.split()) >= 5, text


@pytest.mark.parametrize("name", FLAGS)
def test_every_number_has_bounds(name):
    parser = FLAGS[name].parser
    if isinstance(parser, absl_flags.IntegerParser | absl_flags.FloatParser):
        assert parser.lower_bound is not None


def test_every_flag_is_the_flag_of_some_command():
    assert {holder.name for own in COMMANDS.values() for holder in own} == set(FLAGS)
    for own in COMMANDS.values():
        assert len({holder.name for holder in own}) == len(own)


def test_every_flag_has_the_name_of_its_constant():
    assert {name: holder.name for name, holder in HOLDERS.items()} == {
        name: name.lower() for name in HOLDERS
    }


def test_the_value_of_every_flag_is_used():
    """By its name, or as the argument of the model that has its name."""
    arguments = (*signature(Model).parameters, *signature(Model.for_dataset).parameters)
    used = {name.upper() for name in arguments}
    for path in Path(flags.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr == "value":
                holder = node.value
                used.add(
                    holder.attr if isinstance(holder, ast.Attribute) else getattr(holder, "id", "")
                )
    assert set(HOLDERS) - used == set()


def test_no_module_of_the_engine_nor_model_or_data_defines_or_reads_flags():
    package = Path(flags.__file__).parent
    for path in [*package.glob("engine/*.py"), package / "model.py", package / "data.py"]:
        source = path.read_text(encoding="utf-8")
        assert "DEFINE_" not in source, path
        assert not re.search(
            r"import (task_)?flags$|from \.+ ?import .*\b(task_)?flags\b|flags\b import", source
        ), path


REJECTED = [
    *("batch_size=0", "batch_size=1.5", "limit_examples=0", "seed=-1", "seed=2147483648"),
    *("train_steps=0", "epochs=0", "steps_per_loop=0", "dropout_rate=1", "dropout_rate=-0.1"),
    *("learning_rate=-1", "learning_rate=fast", "momentum=1", "clip_norm=-1", "warmup_steps=-1"),
    *("checkpoint_every=0", "summary_every=0", "evaluate_every=0", "keep_checkpoints=0"),
    *("keep_best=0", "optimizer=magic", "learning_rate_schedule=steps", "devices=tpu"),
    *("devices=cpu:0", "devices=gpu:", "augment=perhaps", "learning_rate=nan", "epochs=nan"),
    *("learning_rate=inf", "dropout_rate=nan", "batch_size=99999999999999999999"),
    *(
        "summary_every=100000000000000000000",
        "profile_steps=5",
        "profile_steps=20,10",
        "learning_rate=1e39",
        "warm_start_from=",
    ),
]


@pytest.mark.parametrize("flag", REJECTED)
def test_a_value_out_of_range_is_refused_in_two_lines(command_line, tmp_path, flag):
    done = command_line("train", f"--model_dir={tmp_path}/run", f"--{flag}")
    assert done.status == 1
    first, second = done.err.splitlines()
    assert first.startswith("FATAL Flags parsing error: ")
    assert f"--{flag.partition('=')[0]}=" in first
    assert second.startswith("Pass --helpshort or --helpfull")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("command", "flag"),
    [
        *(("prepare", "source"), ("prepare", "data_dir"), ("train", "data_dir")),
        *(("train", "model_dir"), ("evaluate", "model_dir"), ("evaluate", "data_dir")),
    ],
)
def test_a_folder_without_a_name_is_refused(command_line, command, flag):
    done = command_line(command, f"--{flag}=")
    assert done.status == 1
    assert f"--{flag}=: must not be empty" in done.err.splitlines()[0]


@pytest.mark.parametrize("value", ["auto", "cpu", "cpu:4", "gpu", "gpu:0", "gpu:0,2"])
def test_devices_are_given_in_one_of_these_forms(value):
    FLAGS["devices"].parser.parse(value)
    assert all(
        validator.verify(absl_flags.FLAGS) is None for validator in FLAGS["devices"].validators
    )


def test_predictions_are_written_as_a_table_or_as_lines_of_json(command_line):
    done = command_line("predict", "--output=predictions.txt")
    assert done.status == 1
    assert "--output=predictions.txt: must end in .csv or .jsonl" in done.err.splitlines()[0]


def test_steps_and_epochs_cannot_both_be_given(command_line):
    done = command_line("train", "--train_steps=10", "--epochs=1")
    assert done.status == 1
    assert "train_steps" in done.err
    assert "epochs" in done.err


@pytest.mark.parametrize("name", ["a\nb", "a\n", "a\udcff"])
def test_a_folder_whose_name_flags_txt_cannot_hold_is_refused(command_line, name):
    done = command_line("train", f"--model_dir={name}")
    assert done.status == 1
    assert "one line of plain text" in done.err


def test_patterns_of_a_warm_start_need_one(command_line):
    done = command_line("train", "--warm_start_include=conv_1/.*")
    assert done.status == 1
    assert "need --warm_start_from" in done.err.splitlines()[0]


def test_an_unknown_flag_is_refused(command_line):
    done = command_line("train", "--learning_rat=0.1")
    assert done.status == 1
    assert "Unknown command line flag 'learning_rat'" in done.err
    assert "learning_rate" in done.err  # a suggestion


@pytest.mark.parametrize(
    ("command", "flag"),
    [("train", "source=digits"), ("prepare", "model_dir=a"), ("evaluate", "learning_rate=1")],
)
def test_a_flag_of_another_command_is_refused(command_line, command, flag):
    done = command_line(command, f"--{flag}")
    name = flag.partition("=")[0]
    assert done.status == 1
    assert done.err == f"error: --{name} is not a flag of this command; see --help\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_help_lists_the_flags_of_the_command_and_does_not_wait_for_tensorflow(run_python, command):
    done = run_python("-X", "importtime", "-m", f"{flags.__package__}.{command}", "--help")
    listed = set(re.findall(r"^  --(?:\[no\])?(\w+):", done.out, re.MULTILINE))
    own = {holder.name for holder in COMMANDS[command]}
    assert own <= listed
    assert not (set(FLAGS) - own) & listed
    imported = {line.rpartition("|")[2].strip() for line in done.err.splitlines() if "|" in line}
    assert f"{flags.__package__}.flags" in imported
    assert not {name.partition(".")[0] for name in imported} & {"tensorflow", "keras", "sklearn"}


def parsed(*arguments):
    absl_flags.FLAGS.unparse_flags()
    absl_flags.FLAGS(["train", *arguments])


@pytest.mark.parametrize(
    ("arguments", "steps"),
    [
        ((), options.DEFAULT_TRAIN_STEPS),
        (("--train_steps=7",), 7),
        (("--epochs=2", "--batch_size=50"), 40),
        (("--epochs=0.5", "--batch_size=300"), 2),
        (("--epochs=0.001",), 1),
    ],
)
def test_training_ends_after_steps_or_after_passes_over_the_data(saved_flags, arguments, steps):
    parsed(*arguments)
    assert flags.train_steps(1000) == steps


def test_flags_become_options(saved_flags):
    parsed("--optimizer=adam", "--learning_rate=0.5", "--clip_norm=2", "--summary_every=3")
    assert flags.optimizer_options(70) == options.OptimizerOptions(
        name="adam",
        learning_rate=0.5,
        train_steps=70,
        momentum=0.9,
        clip_norm=2.0,
    )
    assert flags.loop_options(70).summary_every == 3
    assert flags.loop_options(70).train_steps == 70
    parsed("--devices=cpu:2", "--deterministic")
    expected = options.PlacementOptions(devices="cpu:2", deterministic=True)
    assert flags.placement_options() == expected


@pytest.mark.parametrize("path", sorted((ROOT / "presets").glob("*")), ids=lambda path: path.stem)
def test_a_preset_says_what_it_is_for_and_sets_flags_of_train(saved_flags, path):
    first, *lines = path.read_text(encoding="utf-8").splitlines()
    assert re.fullmatch(r"# [A-Z].*[.?]", first)
    assert lines
    parsed(f"--flagfile={path}")
    changed = {name for name, flag in FLAGS.items() if flag.present}
    assert len(changed) == len(lines)
    assert changed <= {holder.name for holder in flags.TRAIN}

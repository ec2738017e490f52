import json

import pytest
import tensorflow as tf

from {{ cookiecutter.__package_name }}.engine.export import restored
from {{ cookiecutter.__package_name }}.engine.options import OptimizerOptions
from {{ cookiecutter.__package_name }}.engine.run.variables import variables_of
from {{ cookiecutter.__package_name }}.model import Model
from {{ cookiecutter.__package_name }}.vocab import vocab

OF_TENSORFLOW = {"_CHECKPOINTABLE_OBJECT_GRAPH"}
"""Entry that TensorFlow adds to an export's variables, to find its objects again."""
OF_TENSORBOARD = ("_hparams_/session_start_info", "__run_graph__")
"""Where TensorBoard looks for hyper-parameters and for the graph."""


@pytest.mark.slow
def test_every_name_in_events_checkpoints_and_exports_is_of_the_vocabulary(
    command_line, prepared, tmp_path, event_values, checkpoint
):
    """A name of it, one followed by a variable's path, or a column of the data."""
    run = tmp_path / "run"
    for command, *arguments in (
        (
            "train",
            f"--data_dir={prepared.folder}",
            "--train_steps=10",
            "--summary_every=5",
            "--summarize_gradients",
            "--ema_momentum=0.9",
        ),
        ("evaluate", "--split=test"),
        ("export",),
    ):
        done = command_line(command, f"--model_dir={run}", *arguments)
        assert done.status == 0, done.err
    model = Model.for_dataset(prepared, optimizer=OptimizerOptions("momentum", ema_momentum=0.9))
    variables = [*model.network.variables, *model.optimizer.variables]
    paths = {variable.path for variable in variables}
    columns = {name.removeprefix(f"{vocab.x}/") for name in prepared.features}

    def is_input(op):
        return (
            op.type == "Placeholder" and op.outputs[0].dtype != tf.resource
        )  # those are variables

    def is_allowed(name):
        first, _, rest = name.partition("/")
        return name in vocab or name in columns or (first in vocab and rest in paths)

    tags = {
        tag
        for folder in (run, *(path for path in run.iterdir() if path.is_dir()))
        for tag, _, _ in event_values(folder)
        if tag not in OF_TENSORBOARD
    }
    of_each = {f"gradient_norm/{variable.path}" for variable in model.network.trainable_variables}
    assert {"loss", "error", "input_wait", *of_each} <= tags
    keys = set(checkpoint(run, 10))
    assert keys == {*variables_of(model), "state"}

    exported = run / "export" / "1"
    saved = tf.train.list_variables(str(exported / "variables" / "variables"))
    held = restored.load(str(exported))
    graph = restored.get_graph(held.inference)
    assert len(saved) == len(held.variables) + len(OF_TENSORFLOW)
    signature = json.loads((exported / "signature.json").read_text())
    of_export = {
        *held.variables,
        *(name for part in ("inputs", "targets", "outputs") for name in signature[part]),
        *signature["functions"],
        *(op.name for op in graph.get_operations() if is_input(op)),
    }
    assert {*columns, "inference"} <= of_export
    assert [name for name in sorted(tags | keys | of_export) if not is_allowed(name)] == []

"""The layer's variables and its operations are on the CPU, where nothing else says where it is."""

from typing import Any


def check(tried: Any) -> None:
    """Look at the variables and at the graph."""
    if tried.devices != "cpu":
        return
    import tensorflow as tf

    run = tried.module("run").open_run("runs/whole")
    x = run.batch("test", 3)["x"]
    graph = tf.function(run.model.inference).get_concrete_function(x).graph
    products = {
        op.name.split("/")[-2]: op.device for op in graph.get_operations() if op.type == "MatMul"
    }
    assert products["dense_1"].endswith("CPU:0")
    assert not products["logits"]
    assert run.model.network.get_layer("dense_1").kernel.value.device.endswith("CPU:0")

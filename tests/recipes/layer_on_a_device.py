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
    products = {op.name: op.device for op in graph.get_operations() if op.type == "MatMul"}
    [here] = [device for name, device in products.items() if "dense_1" in name]
    [elsewhere] = [device for name, device in products.items() if "logits" in name]
    assert here.endswith("CPU:0")
    assert not elsewhere
    assert run.model.network.get_layer("dense_1").kernel.value.device.endswith("CPU:0")

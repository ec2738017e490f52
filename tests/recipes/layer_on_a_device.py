from typing import Any


def check(tried: Any) -> None:
    """Within another device, the layer's variables and operations stay on the one that it names."""
    if tried.devices == "cpu":
        return
    import keras
    import tensorflow as tf

    layer = tried.module("model").DenseOnCpu
    with tf.device("CPU:1"):
        x = keras.Input((3,))
        h = keras.layers.Dense(4, name="elsewhere")(x)
        network = keras.Model(x, layer(2, name="here")(h))
    kernels = [layer.kernel.value.device[-5:] for layer in network.layers[1:]]
    assert kernels == ["CPU:1", "CPU:0"]

    @tf.function
    def call(x: tf.Tensor) -> tf.Tensor:
        with tf.device("CPU:1"):
            return network(x)

    graph = call.get_concrete_function(tf.TensorSpec((None, 3))).graph
    products = [op.device[-5:] for op in graph.get_operations() if op.type == "MatMul"]
    assert products == ["CPU:1", "CPU:0"]

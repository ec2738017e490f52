"""Which devices a run uses: one, or several that train as one, on one machine or many."""

import functools

import keras
import tensorflow as tf
from absl import logging

from ..errors import UserError
from ..options import PRECISIONS, PlacementOptions
from .cluster import Cluster

# By default TensorFlow keeps 30 frames; there may be more between a line of the model and the operation of a layer.
_LARGEST_STACK = 200


def strategy(options: PlacementOptions, cluster: Cluster | None = None) -> tf.distribute.Strategy:
    """Configures TensorFlow and returns the strategy for ``options.devices`` of this worker and the others.

    Call it before anything else that touches a device. One device gets TensorFlow's default strategy:
    ``MirroredStrategy`` over one device makes a step about 1.7 times as long (measured on CPU).

    Raises:
        UserError: ``options.devices`` names a device that is not there.
    """
    if options.deterministic:
        tf.config.experimental.enable_op_determinism()
    if options.check_numerics:
        tf.debugging.enable_check_numerics(stack_height_limit=_LARGEST_STACK)
    keras.utils.clear_session()  # else Keras numbers the layers of a second model in this process on from the first
    keras.config.set_dtype_policy(PRECISIONS[options.precision])
    tf.get_logger().setLevel("WARNING")  # else it logs each collective that it traces
    tf.debugging.set_log_device_placement(options.log_device_placement)
    names = _devices(options.devices)
    if cluster is not None:
        return _with_others(options, cluster, names)
    return _mirrored(*names) if len(names) > 1 else tf.distribute.get_strategy()


@functools.cache
def _mirrored(*names: str) -> tf.distribute.Strategy:
    """Returns the strategy for these devices, one in a process.

    Another would number its reductions from the start, and TensorFlow would take them for those of the first.
    """
    return tf.distribute.MirroredStrategy(names)


def _devices(asked: str) -> list[str]:
    """Makes the devices visible that ``--devices`` asks for, and returns their names."""
    kind, _, which = asked.partition(":")
    gpus = tf.config.list_physical_devices("GPU") if kind in ("auto", "gpu") else []
    if kind == "gpu" and not gpus:
        raise UserError(
            f"--devices={asked}: TensorFlow sees no GPU; install the extra `cuda` "
            "(pip install -e '.[cuda]') and check `nvidia-smi`, or use --devices=cpu"
        )
    if gpus and which:
        chosen = list(dict.fromkeys(map(int, which.split(","))))
        if max(chosen) >= len(gpus):
            raise UserError(
                f"--devices={asked}: there is no GPU {max(chosen)}; TensorFlow sees {len(gpus)}, "
                "numbered from 0"
            )
        gpus = [gpus[i] for i in chosen]
    tf.config.set_visible_devices(gpus, "GPU")
    for gpu in gpus:  # else the first process takes all memory of every GPU
        tf.config.experimental.set_memory_growth(gpu, True)
    if gpus:
        logging.info("devices: %s", ", ".join(gpu.name for gpu in gpus))
        return [f"GPU:{i}" for i in range(len(gpus))]
    count = int(which) if kind == "cpu" and which else 1
    logging.info("devices: %s", "CPU" if count == 1 else f"{count} virtual CPU devices")
    if count > 1:
        [cpu] = tf.config.list_physical_devices("CPU")
        try:
            tf.config.set_logical_device_configuration(
                cpu, [tf.config.LogicalDeviceConfiguration()] * count
            )
        except RuntimeError:  # TensorFlow runs already
            if len(tf.config.list_logical_devices("CPU")) < count:
                raise UserError(
                    f"--devices=cpu:{count}: this process began with fewer devices; begin with these, or start "
                    "another process"
                ) from None
    return [f"CPU:{i}" for i in range(count)]


def _with_others(
    options: PlacementOptions, cluster: Cluster, devices: list[str]
) -> tf.distribute.Strategy:
    on_gpu = devices[0].startswith("GPU")
    if len(devices) > 1 and not on_gpu:
        raise UserError(
            f"--devices={options.devices}: a worker without GPUs has one device; start more workers"
        )
    logging.info("%s of %d", cluster.name(cluster.index), len(cluster.workers))
    return tf.distribute.MultiWorkerMirroredStrategy(
        tf.distribute.cluster_resolver.SimpleClusterResolver(
            tf.train.ClusterSpec({"worker": list(cluster.workers)}),
            task_type="worker",
            task_id=cluster.index,
            num_accelerators={"GPU": len(devices)} if on_gpu else {},
            rpc_layer="grpc",
        )
    )

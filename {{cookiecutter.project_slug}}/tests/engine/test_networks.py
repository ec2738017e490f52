"""Several networks, optimizers and curves of one's own, on one device and on two."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

from {{ cookiecutter.__package_name }}.engine import gradients, optimizers, random, summaries
from {{ cookiecutter.__package_name }}.engine.distribute import placement
from {{ cookiecutter.__package_name }}.engine.errors import UserError
from {{ cookiecutter.__package_name }}.engine.options import PlacementOptions
from {{ cookiecutter.__package_name }}.engine.run import steps, variables

import plain

OWN = "accuracy"
SHOWN = "inference"


class Two(tf.Module):
    """A network that estimates and one that judges, each with an optimizer that a project made itself."""

    def __init__(self):
        super().__init__()
        keras.utils.set_random_seed(0)
        self.seed, self.options = 3, plain.options(clip_norm=0.0)
        self.networks, self.optimizers = {}, {}
        for name, optimizer in (
            ("first", keras.optimizers.Nadam(0.01)),
            ("second", keras.optimizers.SGD(0.1, momentum=0.9, use_ema=True, ema_momentum=0.9)),
        ):
            x = keras.Input([4])
            h = random.Dropout(0.3, name="dropout")(keras.layers.Dense(8, "tanh", name="dense")(x))
            network = keras.Model(x, keras.layers.Dense(1, name="out")(h))
            self.networks[name] = network
            self.optimizers[f"{name}_optimizer"] = optimizers.prepare(
                optimizer, network.trainable_variables
            )

    def losses(self, x, y, training=False, of="first"):
        return (self.networks[of](x, training=training)[:, 0] - y) ** 2

    def optimize(self, x, y=None):
        step = tf.identity(variables.global_step_of(self))
        reported = {}
        for name in self.networks:
            reported[name] = gradients.minimize(
                self,
                x,
                y,
                loss=functools.partial(self.losses, of=name),
                network=self.networks[name],
                optimizer=self.optimizers[f"{name}_optimizer"],
                step=step,
            )
        summaries.write("histogram", SHOWN, x[:, 0])
        summaries.write("scalar", "label", tf.reduce_max(x))
        return {
            **reported["first"],
            "second_loss": reported["second"]["loss"],
            OWN: tf.reduce_mean(x),
        }


BATCHES = np.random.default_rng(0).normal(size=[3, 8, 5]).astype(np.float32)


def trained(strategy):
    """Returns the names of a step's scalars, their values, what is shown, and the variables after three steps."""
    with strategy.scope():
        model = Two()
    dataset = tf.data.Dataset.from_tensor_slices({"x": BATCHES[..., :4], "y": BATCHES[..., 4]})
    parts = dataset.unbatch().batch(8 // strategy.num_replicas_in_sync, drop_remainder=True)
    batches = strategy.distribute_datasets_from_function(lambda context: parts.repeat())
    train = steps.Train(model, strategy, iter(batches))
    rows, last = train(3)
    kept = {key: v.numpy().tolist() for key, v in variables.variables_of(model).items()}
    return train.names, rows.numpy().tolist(), np.asarray(last[SHOWN]).tolist(), kept


@pytest.fixture(scope="module")
def on_one():
    return trained(tf.distribute.get_strategy())


@pytest.fixture(scope="module")
def on_two():
    return trained(placement.strategy(PlacementOptions(devices="cpu:2")))


def test_every_scalar_of_a_step_is_reported_and_own_ones_are_those_of_the_whole_batch(on_one):
    names, rows, _, _ = on_one
    assert names[:3] == ("loss", "gradient_norm", "learning_rate")
    assert set(names[3:]) == {"second_loss", OWN, "label", "input_wait"}
    own = np.array(rows)[:, names.index(OWN)]
    assert own == pytest.approx(BATCHES[..., :4].mean(axis=(1, 2)), abs=1e-6)


def test_two_devices_report_show_and_train_what_one_does(on_one, on_two):
    names, rows, shown, kept = on_one
    names_of_two, rows_of_two, shown_of_two, kept_of_two = on_two
    assert names == names_of_two
    same = [i for i, name in enumerate(names) if name not in ("input_wait", "label")]
    assert np.array(rows)[:, same] == pytest.approx(np.array(rows_of_two)[:, same], abs=1e-5)
    assert shown == pytest.approx(BATCHES[2, :, 0])
    assert shown_of_two == pytest.approx(shown)
    assert kept.keys() == kept_of_two.keys()
    for key, value in kept.items():
        assert np.array(kept_of_two[key]) == pytest.approx(np.array(value), abs=1e-5), key


def test_variables_have_the_names_of_their_networks_and_optimizers(on_one):
    keys = set(on_one[3])
    expected = {"first/dense/kernel", "second/out/bias", "average/second/out/bias", "global_step"}
    assert expected <= keys
    assert {key.partition("/")[0] for key in keys} == {
        *("first", "second", "first_optimizer", "second_optimizer", "average", "global_step")
    }
    assert on_one[3]["global_step"] == 3
    assert not [key for key in keys if "learning_rate" in key]
    # Keras numbers the optimizers of a process.
    assert set(variables.variables_of(Two())) == keys


class Lost(Two):
    """Uses a variable that is in no network, and one of an optimizer that is in none of the model's."""

    def __init__(self, kind):
        super().__init__()
        self.extra = tf.Variable(2.0, name="temperature", trainable=kind == "trainable")
        self.own = optimizers.prepare(
            keras.optimizers.SGD(momentum=0.9), self.networks["first"].trainable_variables
        )
        self.kind = kind

    def optimize(self, x, y=None):
        if self.kind == "changed":
            self.extra.assign_add(1.0)
        return gradients.minimize(
            self,
            x,
            y,
            loss=lambda x, y, training=False: self.extra * self.losses(x, y, training),
            network=self.networks["first"],
            optimizer=self.own if self.kind == "optimizer" else self.optimizers["first_optimizer"],
        )


@pytest.mark.parametrize(
    ("kind", "name"),
    [("trainable", "temperature"), ("changed", "temperature"), ("optimizer", "sgd")],
)
def test_a_variable_that_no_checkpoint_would_hold_is_refused_by_name(kind, name):
    batches = tf.data.Dataset.from_tensor_slices({"x": BATCHES[..., :4], "y": BATCHES[..., 4]})
    with pytest.raises(UserError, match=rf"variable '[^']*{name}[^']*', which is in no checkpoint"):
        steps.Train(Lost(kind), tf.distribute.get_strategy(), iter(batches))


def test_a_constant_variable_outside_of_the_networks_is_no_fault():
    batches = tf.data.Dataset.from_tensor_slices({"x": BATCHES[..., :4], "y": BATCHES[..., 4]})
    assert steps.Train(Lost("constant"), tf.distribute.get_strategy(), iter(batches)).names


class Reporting(Two):
    """Reports more than a step does."""

    def __init__(self, more):
        super().__init__()
        self.more = more

    def optimize(self, x, y=None):
        return self.more(super().optimize(x, y), x)


def shown_twice(reported, x):
    for value in (1.0, 3.0):
        summaries.write("scalar", "precision", value)
    return reported


def written(reported):
    summaries.write("scalar", "loss", 1.0)
    return reported


WRONG = {
    "no loss": (lambda reported, x: {}, "returns no 'loss'"),
    "nothing": (lambda reported, x: None, "returns no 'loss'"),
    "a vector": (
        lambda reported, x: {**reported, "recall": x[:, 0]},
        r"'recall' of the shape \(8,\)",
    ),
    "error": (lambda reported, x: {**reported, "error": 1.0}, "'error' is a curve already"),
    "written": (lambda reported, x: written(reported), "'loss' is a curve already"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_a_step_reports_wrongly_is_one_line(wrong):
    more, message = WRONG[wrong]
    batches = tf.data.Dataset.from_tensor_slices({"x": BATCHES[..., :4], "y": BATCHES[..., 4]})
    with pytest.raises(UserError, match=message) as caught:
        steps.Train(Reporting(more), tf.distribute.get_strategy(), iter(batches))
    assert "\n" not in str(caught.value)


def test_numbers_of_python_are_scalars_and_what_is_written_twice_is_a_mean():
    batches = tf.data.Dataset.from_tensor_slices({"x": BATCHES[..., :4], "y": BATCHES[..., 4]})
    model = Reporting(lambda reported, x: shown_twice({**reported, "recall": 2}, x))
    train = steps.Train(model, tf.distribute.get_strategy(), iter(batches.repeat()))
    row = dict(zip(train.names, train(1)[0].numpy()[0], strict=True))
    assert (row["recall"], row["precision"]) == (2.0, 2.0)


def test_a_feature_that_the_model_does_not_take_is_refused_by_name():
    batches = tf.data.Dataset.from_tensors({"x": BATCHES[0, :, :4], "mask": BATCHES[0, :, 4]})
    with pytest.raises(UserError, match=r"feature 'mask'.*optimize no argument of this name"):
        steps.Train(Two(), tf.distribute.get_strategy(), iter(batches))

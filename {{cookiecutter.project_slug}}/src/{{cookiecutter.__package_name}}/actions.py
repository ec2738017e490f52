"""What happens during training beside what the flags say. Yours to edit.

An action is a function and when to call it: every so many steps, every so many seconds, or on given steps.

    def largest_weight(context: Context) -> None:
        weights = tf.concat([tf.reshape(v, [-1]) for v in context.model.network.trainable_variables], 0)
        context.writer.write("scalar", vocab.largest_weight, tf.reduce_max(tf.abs(weights)), context.step)

    return [Action(largest_weight, every_steps=100)]
"""

from .engine.actions import Action


def actions() -> list[Action]:
    """Returns what ``train`` calls, in this order, after an evaluation and before a checkpoint of the same step."""
    return []

"""Which example goes to which split."""

from collections.abc import Sequence

import numpy as np

from .. import dataset
from ..errors import UserError


def stratified(
    labels: np.ndarray,
    classes: Sequence[str],
    *,
    validation_fraction: float,
    test_fraction: float,
    seed: int,
) -> dict[str, np.ndarray]:
    """Divides examples into three splits of the sizes asked for, each class in the same proportion.

    Each split holds at least one example of every class, which comes first where a class is small.

    Args:
        labels: ``[examples]`` int64, the class of each example.
        classes: the name of each class.
        validation_fraction: of the examples, above 0.
        test_fraction: of the examples, above 0; the sum of both is below 1.
        seed: decides which examples, and their order.

    Returns:
        For each split the indices of its examples, ``[n]`` int64, in the random order they are to be stored in.

    Raises:
        UserError: the fractions leave nothing to train on, or a class is too small for three splits.
    """
    if min(validation_fraction, test_fraction) <= 0 or validation_fraction + test_fraction >= 1:
        raise UserError(
            f"--validation_fraction={validation_fraction} and --test_fraction={test_fraction}: "
            "both must be above 0 and their sum below 1"
        )
    counts = np.bincount(labels, minlength=len(classes))
    if counts.min() < len(dataset.SPLITS):
        smallest = int(counts.argmin())
        raise UserError(
            f"class {classes[smallest]!r} has {counts[smallest]} example(s), but needs at least "
            f"{len(dataset.SPLITS)}, one for each split; add some or leave the class out"
        )
    validation = _share(counts, validation_fraction, largest=counts - 2)
    test = _share(counts, test_fraction, largest=counts - validation - 1)

    generator = np.random.default_rng(seed)
    order = generator.permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    position = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)  # in its class
    of_class = labels[order]
    in_validation = position < validation[of_class]
    in_test = ~in_validation & (position < (validation + test)[of_class])
    return {
        dataset.TRAIN: generator.permutation(order[~in_validation & ~in_test]),
        dataset.VALIDATION: generator.permutation(order[in_validation]),
        dataset.TEST: generator.permutation(order[in_test]),
    }


def _share(counts: np.ndarray, fraction: float, largest: np.ndarray) -> np.ndarray:
    """Returns how many examples of each class to take, at least 1 and at most ``largest``: largest remainders first."""
    exact = counts * fraction
    taken = np.clip(np.floor(exact).astype(np.int64), 1, largest)
    missing = round(fraction * int(counts.sum())) - int(taken.sum())
    for label in np.argsort(np.floor(exact) - exact, kind="stable"):
        if missing > 0 and taken[label] < largest[label]:
            taken[label] += 1
            missing -= 1
    return taken

import numpy as np
import pytest

from {{ cookiecutter.__package_name }}.engine.data import splits
from {{ cookiecutter.__package_name }}.engine.errors import UserError


def stratified(counts, *, validation_fraction=0.15, test_fraction=0.15, seed=0):
    labels = np.random.default_rng(5).permutation(np.repeat(np.arange(len(counts)), counts))
    chosen = splits.stratified(
        labels,
        [f"class_{number}" for number in range(len(counts))],
        validation_fraction=validation_fraction,
        test_fraction=test_fraction,
        seed=seed,
    )
    shares = {name: np.bincount(labels[n], minlength=len(counts)) for name, n in chosen.items()}
    return chosen, shares


def test_every_example_is_in_exactly_one_split():
    chosen, _ = stratified([40, 31, 7])
    assert list(chosen) == ["train", "validation", "test"]
    assert sorted(np.concatenate(list(chosen.values()))) == list(range(78))


def test_splits_have_the_sizes_asked_for():
    counts = [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    chosen, _ = stratified(counts)
    assert [len(numbers) for numbers in chosen.values()] == [1257, 270, 270]


def test_every_class_has_the_same_share_in_every_split():
    counts = np.array([1000, 500, 33, 10])
    _, shares = stratified(counts, validation_fraction=0.2, test_fraction=0.1)
    for name, fraction in {"train": 0.7, "validation": 0.2, "test": 0.1}.items():
        assert np.all(np.abs(shares[name] - counts * fraction) <= 1)


@pytest.mark.parametrize("fractions", [(0.001, 0.001), (0.15, 0.15), (0.49, 0.49)])
def test_every_split_has_an_example_of_every_class(fractions):
    _, shares = stratified(
        [3, 400, 4, 3], validation_fraction=fractions[0], test_fraction=fractions[1]
    )
    assert min(share.min() for share in shares.values()) >= 1


def test_the_seed_decides_the_splits_and_their_order():
    first, again, other = (stratified([50, 50], seed=seed)[0] for seed in (1, 1, 2))
    for name, numbers in first.items():
        np.testing.assert_array_equal(numbers, again[name])
        assert set(numbers) != set(other[name])
        assert not np.array_equal(numbers, np.sort(numbers))


def test_a_class_that_is_too_small_for_three_splits_is_refused():
    with pytest.raises(UserError, match=r"class 'class_1' has 2 example\(s\), .* at least 3"):
        stratified([30, 2, 30])


@pytest.mark.parametrize("fractions", [(0, 0.1), (0.1, 0), (0.5, 0.5), (0.7, 0.4)])
def test_fractions_that_leave_nothing_are_refused(fractions):
    with pytest.raises(UserError, match="--validation_fraction"):
        stratified([30, 30], validation_fraction=fractions[0], test_fraction=fractions[1])

import dataclasses
import hashlib
import inspect
import itertools
import shutil

import numpy as np
import pytest
import tensorflow as tf

from {{ cookiecutter.__package_name }}.engine import batches, dataset, random
from {{ cookiecutter.__package_name }}.engine.data import records
from {{ cookiecutter.__package_name }}.engine.errors import UserError
from {{ cookiecutter.__package_name }}.engine.examples import open_split

ONE_DEVICE = tf.distribute.get_strategy()


class Readers:
    """Stands for a strategy whose replicas are spread evenly over workers that read for themselves.

    Several real strategies do not get on in one process. The pipelines are the real ones.
    """

    def __init__(self, replicas, workers=1):
        self.num_replicas_in_sync = replicas
        self.workers = workers

    def distribute_datasets_from_function(self, pipeline):
        """Yields what the replicas get, in the order of their numbers, one global batch a time."""
        local = self.num_replicas_in_sync // self.workers
        contexts = [
            tf.distribute.InputContext(self.workers, i, self.num_replicas_in_sync)
            for i in range(self.workers)
        ]
        parts = [iter(pipeline(context)) for context in contexts]
        while True:
            try:
                yield [next(part) for part in parts for _ in range(local)]
            except StopIteration:
                return


READERS = [
    Readers(2),
    Readers(4),
    Readers(2, workers=2),
    Readers(4, workers=4),
    Readers(4, workers=2),
]
READERS_IDS = [f"{r.num_replicas_in_sync} replicas, {r.workers} workers" for r in READERS]


def joined(parts):
    return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}


def training(split, strategy, steps, *, batch_size=32, seed=5, **options):
    """Returns `steps` global batches."""
    batched = batches.training(split, strategy, batch_size=batch_size, seed=seed, **options)
    return [
        joined(parts if isinstance(parts, list) else [parts])
        for parts in itertools.islice(batched, steps)
    ]


def fingerprints(global_batches):
    digests = []
    for batch in global_batches:
        digest = hashlib.sha256()
        for key in sorted(batch):
            digest.update(np.ascontiguousarray(batch[key]).tobytes())
        digests.append(digest.hexdigest())
    return digests


def augment(batch, seed, step, first):
    """Darkens each image by a factor of its own."""
    drawn = random.uniform(seed, "augment", step, first, [tf.shape(batch["y"])[0], 1, 1, 1])
    return {**batch, "x": tf.cast(batch["x"], tf.float32) * drawn}


EXAMPLES = 1257


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """Random images in three splits, as `dataset.load` returns them."""
    folder = tmp_path_factory.mktemp("images")
    features = {"x": dataset.Feature("uint8", (8, 8, 1)), "y": dataset.Feature("int64", ())}
    generator = np.random.default_rng(0)
    splits = {}
    for name, count, shards in (("train", EXAMPLES, 4), ("validation", 10, 1), ("test", 10, 1)):
        x = generator.integers(0, 256, (count, 8, 8, 1)).astype(np.uint8)
        examples = [{"x": image, "y": np.int64(i % 10)} for i, image in enumerate(x)]
        splits[name] = records.write_split(folder, name, examples, features, count, shards)
    dataset.write(
        folder,
        source="random",
        seed=0,
        features=features,
        classes=list("0123456789"),
        statistics={},
        splits=splits,
    )
    return dataset.load(folder)


@pytest.fixture(scope="module")
def split(images):
    return open_split(images, "train")


@pytest.fixture(scope="module")
def whole(images):
    """All of the training split in the order of the shards, read record by record."""
    reader = records.Reader(images.folder, "train", images.splits["train"])
    serialized = reader.read(np.arange(images.splits["train"].examples))
    examples = [tf.train.Example.FromString(one) for one in serialized]
    x = [np.frombuffer(e.features.feature["x"].bytes_list.value[0], np.uint8) for e in examples]
    y = [e.features.feature["y"].int64_list.value[0] for e in examples]
    return np.array(x).reshape(-1, 8, 8, 1), np.array(y)


def places(count):
    return tf.range(count, dtype=tf.int64)


def test_each_pass_is_a_permutation_and_no_two_are_alike():
    examples = 101
    order = batches.shuffled(places(3 * examples), examples, 5).numpy()
    passes = order.reshape(3, examples)
    for one in passes:
        assert sorted(one) == list(range(examples))
        assert np.sum(one == np.arange(examples)) < 8
    for a, b in ((0, 1), (1, 2), (0, 2)):
        assert np.sum(passes[a] == passes[b]) < 8


def test_the_order_has_no_trace_of_the_order_before_it():
    order = batches.shuffled(places(2000), 1000, 5).numpy()
    assert abs(np.corrcoef(order[:1000], np.arange(1000))[0, 1]) < 0.1
    assert abs(np.corrcoef(order[:1000], order[1000:])[0, 1]) < 0.1
    assert abs(np.corrcoef(order[:999], order[1:1000])[0, 1]) < 0.1


@pytest.mark.parametrize("start", [0, 1, 57, 101, 150, 10**12])
def test_any_place_of_the_order_can_be_had_alone(start):
    together = batches.shuffled(start + places(60), 101, 5).numpy()
    alone = [int(batches.shuffled(start + i + places(1), 101, 5)[0]) for i in range(60)]
    assert together.tolist() == alone


@pytest.mark.parametrize("strategy", [ONE_DEVICE, *READERS], ids=["one device", *READERS_IDS])
def test_micro_batches_of_all_replicas_join_to_the_global_batch(split, strategy):
    [whole] = training(split, ONE_DEVICE, 1, augment=augment)
    parts = 4
    batched = batches.training(
        split, strategy, batch_size=32, seed=5, accumulate_steps=parts, augment=augment
    )
    replicas = next(iter(batched))
    replicas = replicas if isinstance(replicas, list) else [replicas]
    for key, expected in whole.items():
        micro = [np.split(np.asarray(batch[key]), parts) for batch in replicas]
        found = [micro[r][i] for i in range(parts) for r in range(len(replicas))]
        assert np.array_equal(np.concatenate(found), expected)


@pytest.mark.parametrize("varied", [None, augment], ids=["plain", "augmented"])
def test_workers_need_not_ask_each_other_whether_there_is_another_batch(split, varied):
    batched = batches.training(split, ONE_DEVICE, batch_size=32, seed=5, augment=varied)
    assert batched.cardinality() == tf.data.INFINITE_CARDINALITY


def test_a_batch_that_micro_batches_do_not_divide_is_refused(split):
    with pytest.raises(
        UserError, match=r"batch_size=32 .*2 devices times --accumulate_steps=3.*36"
    ):
        batches.training(split, Readers(2), batch_size=32, seed=5, accumulate_steps=3)


def test_another_seed_gives_another_order():
    orders = [batches.shuffled(places(100), 100, s).numpy() for s in (5, 6)]
    assert np.sum(orders[0] == orders[1]) < 8


@pytest.mark.parametrize("examples", [1, 2, 3])
def test_tiny_splits_are_shuffled_too(examples):
    order = batches.shuffled(places(4 * examples), examples, 5).numpy()
    assert np.array_equal(np.sort(order.reshape(4, examples)), [list(range(examples))] * 4)


def test_a_pass_over_the_batches_shows_every_example_once(split, whole):
    # 1,257 examples: the 40th batch of 32 reaches into the second pass.
    seen = joined(training(split, ONE_DEVICE, 40))
    x, y = whole
    expected = sorted((*image.ravel(), label) for image, label in zip(x, y, strict=True))
    pairs = list(zip(seen["x"][: len(y)], seen["y"][: len(y)], strict=True))
    assert sorted((*image.ravel(), label) for image, label in pairs) == expected
    assert not np.array_equal(seen["y"][: len(y)], y)


def test_batches_of_steps_0_to_500_are_identical_on_any_readers_and_from_any_step(split):
    expected = fingerprints(training(split, ONE_DEVICE, 501, augment=augment))
    assert len(set(expected)) == 501
    for readers in (READERS[1], READERS[2], READERS[3]):
        assert fingerprints(training(split, readers, 501, augment=augment)) == expected
    for first in (300, 499, 500):
        got = training(split, ONE_DEVICE, 501 - first, augment=augment, first_step=first)
        assert fingerprints(got) == expected[first:]


@pytest.mark.parametrize("readers", READERS, ids=READERS_IDS)
def test_readers_that_start_late_get_the_batches_of_one_that_started_early(split, readers):
    early = training(split, ONE_DEVICE, 53, augment=augment)
    late = training(split, readers, 13, augment=augment, first_step=40)
    assert fingerprints(late) == fingerprints(early[40:])


@pytest.mark.slow
def test_real_strategies_read_the_same_batches(images, run_python):
    script = f"""
import hashlib, sys
import tensorflow as tf
from {batches.__package__} import batches, dataset, options, random
from {batches.__package__}.distribute import placement
from {batches.__package__}.examples import open_split
{inspect.getsource(augment)}
strategy = placement.strategy(options.PlacementOptions(devices=sys.argv[1]))
split = open_split(dataset.load(sys.argv[2]), "train")
iterator = iter(batches.training(split, strategy, batch_size=32, seed=5, augment=augment))
for _ in range(501):
    parts = dict((k, strategy.experimental_local_results(v)) for k, v in next(iterator).items())
    digest = hashlib.sha256()
    for key in sorted(parts):
        digest.update(b"".join(part.numpy().tobytes() for part in parts[key]))
    print(digest.hexdigest())
"""
    split = open_split(images, "train")
    expected = fingerprints(training(split, ONE_DEVICE, 501, augment=augment))
    for devices in ("cpu", "cpu:2", "cpu:4"):
        done = run_python("-c", script, devices, str(images.folder))
        assert done.status == 0, done.err
        assert done.out.split() == expected


def test_a_step_far_away_has_the_batch_that_the_order_says(split, whole):
    (batch,) = training(split, ONE_DEVICE, 1, first_step=10**6)
    places = 10**6 * 32 + np.arange(32)
    numbers = [
        int(
            tf.raw_ops.RandomIndexShuffle(
                index=p % 1257, seed=[5, p // 1257, p // 1257], max_index=1256, rounds=4
            )
        )
        for p in places.tolist()
    ]
    assert np.array_equal(batch["x"], whole[0][numbers])
    assert np.array_equal(batch["y"], whole[1][numbers])


def test_batches_from_disk_are_those_from_memory(images, split):
    from_disk = open_split(images, "train", in_memory_bytes=0)
    expected = fingerprints(training(split, ONE_DEVICE, 50, augment=augment))
    assert fingerprints(training(from_disk, ONE_DEVICE, 50, augment=augment)) == expected
    assert fingerprints(training(from_disk, READERS[1], 50, augment=augment)) == expected


def test_a_split_is_kept_in_memory_exactly_when_it_fits(images, monkeypatch):
    needed = 1257 * (8 * 8 + 8)
    reads = []
    original = records.Reader.read

    def counted(self, indices):
        reads.append(len(indices))
        return original(self, indices)

    monkeypatch.setattr(records.Reader, "read", counted)
    open_split(images, "train", in_memory_bytes=needed - 1)
    assert reads == []
    kept = open_split(images, "train", in_memory_bytes=needed)
    assert sum(reads) == 1257
    assert kept.in_memory
    kept.fetch(tf.constant([3, 4], tf.int64))
    assert sum(reads) == 1257


def test_slow_input_is_answered_with_the_flag_that_helps(images, split):
    on_disk = open_split(images, "train", in_memory_bytes=0)
    assert not on_disk.in_memory
    assert "--in_memory_mb=1 " in batches.advice(on_disk, augmented=True)
    assert "--noaugment" in batches.advice(split, augmented=True)
    assert "--batch_size" in batches.advice(split, augmented=False)


def test_large_batches_are_fetched_one_at_a_time(images, split):
    fetched = []

    def fetch(numbers):
        fetched.append(numbers.shape[0])
        return split.fetch(numbers)

    for example_bytes in (8, 2**20 // 32 // 3, 2**20):
        described = dataclasses.replace(split, fetch=fetch, example_bytes=example_bytes)
        got = training(described, ONE_DEVICE, 20)
        assert fingerprints(got) == fingerprints(training(split, ONE_DEVICE, 20))
    assert fetched == [16 * 32, 3 * 32, 32]


def test_a_limit_takes_the_first_examples_only(images, whole):
    limited = open_split(images, "train", limit=24)
    assert limited.examples == 24
    batch = joined(training(limited, ONE_DEVICE, 3, batch_size=8))
    first = sorted(image.tobytes() for image in whole[0][:24])
    assert sorted(image.tobytes() for image in batch["x"]) == first
    assert open_split(images, "train", limit=10**9).examples == 1257


def evaluation(split, strategy, batch_size):
    return [
        joined(parts if isinstance(parts, list) else [parts])
        for parts in batches.evaluation(split, strategy, batch_size=batch_size)
    ]


@pytest.mark.parametrize("batch_size", [20, 256, 1256, 2000])
@pytest.mark.parametrize("strategy", [ONE_DEVICE, *READERS], ids=["one device", *READERS_IDS])
def test_evaluation_shows_every_example_once_and_in_order(split, whole, strategy, batch_size):
    got = evaluation(split, strategy, batch_size)
    assert {len(batch["y"]) for batch in got} == {batch_size}
    together = joined(got)
    weight = together["weight"]
    assert set(weight) <= {0.0, 1.0}
    assert np.array_equal(together["x"][weight == 1], whole[0])
    assert np.array_equal(together["y"][weight == 1], whole[1])
    assert len(weight) - 1257 < batch_size


def test_a_batch_that_the_replicas_do_not_divide_is_refused_with_one_that_they_do(split):
    message = r"--batch_size=30 cannot be divided among 4 devices; use a multiple of 4, such as 32"
    with pytest.raises(UserError, match=message):
        batches.training(split, Readers(4), batch_size=30, seed=5)
    with pytest.raises(UserError, match=message):
        batches.evaluation(split, Readers(4), batch_size=30)


def test_the_sample_images_are_the_first_of_step_0(split):
    (batch,) = training(split, ONE_DEVICE, 1, augment=augment)
    samples = batches.first_examples(split, seed=5, augment=augment, count=16)
    assert np.array_equal(samples["x"], batch["x"][:16])
    assert np.array_equal(samples["y"], batch["y"][:16])


def test_a_corrupt_record_met_in_training_is_named(images, tmp_path):
    folder = tmp_path / "data"
    shutil.copytree(images.folder, folder)
    shard = folder / images.splits["train"].shards[1].file
    contents = bytearray(shard.read_bytes())
    contents[len(contents) // 2] ^= 255
    shard.write_bytes(contents)
    damaged = open_split(dataset.load(folder), "train", in_memory_bytes=0)
    with pytest.raises(tf.errors.OpError, match=rf"UserError: {shard}: record \d+ is corrupt"):
        training(damaged, ONE_DEVICE, 40)


def test_columns_come_as_a_dictionary_of_their_own(tmp_path):
    features = {
        dataset.column_feature("height"): dataset.Feature("float32", ()),
        dataset.column_feature("y"): dataset.Feature("string", ()),
        "y": dataset.Feature("int64", ()),
    }
    examples = [{"x/height": np.float32(i), "x/y": f"row {i}", "y": np.int64(i)} for i in range(9)]
    splits = {
        name: records.write_split(tmp_path, name, examples, features, 9, 1)
        for name in dataset.SPLITS
    }
    dataset.write(
        tmp_path,
        source="columns",
        seed=0,
        features=features,
        classes=[],
        statistics={},
        splits=splits,
    )
    loaded = dataset.load(tmp_path)
    for in_memory_bytes in (0, 2**20):
        split = open_split(loaded, "train", in_memory_bytes=in_memory_bytes)
        batch = next(iter(batches.training(split, ONE_DEVICE, batch_size=9, seed=5)))
        assert set(batch) == {"x", "y"}
        assert sorted(batch["y"].numpy()) == list(range(9))
        assert batch["x"]["height"].numpy().tolist() == batch["y"].numpy().tolist()
        assert batch["x"]["y"].numpy().tolist() == [f"row {i}".encode() for i in batch["y"]]
    specs = records.specs(features)
    assert specs["x"]["y"] == tf.TensorSpec([None], tf.string)
    assert specs["y"] == tf.TensorSpec([None], tf.int64)

"""2,000 image files through `predict`, against a loop that decodes and predicts one file at a time.

Both use the same checkpoint and the same decoder, in one process, in turns; the loop's function is traced before it is
timed, and predict's time is the one that it prints itself, which leaves out the same start.
"""

import argparse
import contextlib
import io
import json
import tempfile
import time
from pathlib import Path

import numpy as np
import tensorflow as tf
from absl import flags as absl_flags
from digit_classifier import flags, predict
from digit_classifier.engine import dataset
from digit_classifier.engine.examples import open_split
from digit_classifier.engine.run import restore
from digit_classifier.inputs import open_inputs
from digit_classifier.model import Model
from measuring import Bar, report, take_turns
from PIL import Image

FILES = 2_000


def write_files(folder: Path, data: dataset.Dataset) -> None:
    """Write the training split as PNG files, over and over."""
    split = open_split(data, "train")
    images = split.fetch(np.arange(FILES) % split.examples)["x"].numpy()
    for number, image in enumerate(images):
        Image.fromarray(image[..., 0]).save(folder / f"{number:04}.png")


def main() -> None:
    """Compare examples a second of both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    data = dataset.load("data")
    model = Model.for_dataset(data)
    restore.restore_run("runs/baseline", model)
    inference = tf.function(model.inference)

    with tempfile.TemporaryDirectory() as folder:
        write_files(Path(folder), data)
        output = Path(folder) / "predictions.csv"
        absl_flags.FLAGS(["predict", f"--input={folder}", f"--output={output}"])
        shape = list(data.features["x"].shape)
        inputs = open_inputs([folder], {"x": {"dtype": "uint8", "shape": [None, *shape]}})
        inference(tf.constant(inputs.read(0)["x"][np.newaxis]))

        def single() -> float:
            began = time.perf_counter()
            for number in range(FILES):
                inference(tf.constant(inputs.read(number)["x"][np.newaxis])).numpy()
            return FILES / (time.perf_counter() - began)

        def batched() -> float:
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                predict.main(["predict"])
            rate: float = json.loads(printed.getvalue().splitlines()[-1])["examples_per_second"]
            return rate

        contenders = {"predict": batched, "single": single}
        name = f"2,000 PNG files, batch size {flags.BATCH_SIZE.value}: one call a file"
        rows = take_turns(contenders, [(name, "predict", "single", Bar(3.0))], unit="examples/s")
        report(rows, arguments.output)


if __name__ == "__main__":
    main()

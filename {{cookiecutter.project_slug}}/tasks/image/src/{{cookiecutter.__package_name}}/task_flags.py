"""The flags that only a project on images has; ``flags.py`` adds them to its commands."""

import re

from absl import flags

SOURCE = flags.DEFINE_string(
    "source",
    "digits",
    "`digits` (1,797 handwritten digits that come with scikit-learn), or a folder that holds a "
    "folder of PNG or JPEG files for each class.",
)
IMAGE_SIZE = flags.DEFINE_list(
    "image_size",
    None,
    "Height,width that every image is resized to; without it all images must have one size.",
)
flags.register_validator(
    "image_size",
    lambda value: (
        value is None or (len(value) == 2 and all(re.fullmatch(r"[1-9]\d*", v) for v in value))
    ),
    message="must be two positive whole numbers: --image_size=64,64",
)
AUGMENT = flags.DEFINE_bool(
    "augment", True, "Shift training images at random by up to a tenth of their size."
)

PREPARE = (SOURCE, IMAGE_SIZE)
TRAIN = (AUGMENT,)

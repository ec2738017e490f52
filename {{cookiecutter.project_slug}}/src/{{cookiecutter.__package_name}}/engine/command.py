"""Runs a command: parses its flags, and turns what a user can put right into one line and exit status 1."""

import json
import logging as python_logging
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from absl import app, flags, logging

from .errors import UserError

FLAGS_FILE = "flags.txt"


def run(main: Callable[[Sequence[str]], int | None], key_flags: Sequence[flags.FlagHolder]) -> None:
    """Runs ``main`` through ``absl.app.run``.

    Args:
        main: the command; what it returns is the exit status.
        key_flags: the flags of this command, which ``--help`` lists; any other of the project is refused.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # TensorFlow's start-up messages
    for holder in key_flags:
        flags.FLAGS.register_key_flag_for_module(sys.argv[0], flags.FLAGS[holder.name])

    def guarded(arguments: Sequence[str]) -> int | None:
        logging.set_verbosity(max(logging.get_verbosity(), logging.INFO))
        logging.get_absl_handler().setFormatter(
            python_logging.Formatter("%(asctime)s %(message)s", "%H:%M:%S")
        )
        try:
            _refuse_foreign(arguments, key_flags)
            return main(arguments)
        except UserError as error:
            return _fail(str(error))
        except OSError as error:
            if error.filename is None:
                raise
            return _fail(f"{error.filename}: {error.strerror}")
        except Exception as error:
            # TensorFlow wraps what is raised while it reads a batch, and keeps the text only.
            inside = re.search(r"\bUserError: (.*)", str(error))
            if inside is None:
                raise
            return _fail(inside[1])

    app.run(guarded)


def read_flags_of_run(model_dir: str) -> None:
    """Takes over the flags that a run was trained with, save those given on the command line.

    Raises:
        UserError: ``model_dir`` is not the folder of a run.
    """
    path = Path(model_dir) / FLAGS_FILE
    if not path.is_file():
        raise UserError(
            f"--model_dir={model_dir}: no {FLAGS_FILE} there, so it is not the folder of a run; "
            "name one that `train` wrote"
        )
    taken = []
    for line in path.read_text(encoding="utf-8").splitlines():
        name = line.removeprefix("--").partition("=")[0]
        name = name if name in flags.FLAGS else name.removeprefix("no")
        if name not in flags.FLAGS:
            logging.warning("%s: flag --%s no longer exists and is left out", path, name)
        elif not flags.FLAGS[name].present:
            taken.append(line)
    flags.FLAGS([sys.argv[0], *taken])


def write_flags(model_dir: str, key_flags: Sequence[flags.FlagHolder]) -> None:
    """Writes the flag file that repeats the run: ``--flagfile=<model_dir>/flags.txt``."""
    lines = [flags.FLAGS[holder.name].serialize() for holder in key_flags]
    path = Path(model_dir) / FLAGS_FILE
    beside = path.with_name(f".{FLAGS_FILE}.new")
    beside.write_text("\n".join(line for line in lines if line) + "\n", encoding="utf-8")
    beside.replace(path)


def _refuse_foreign(arguments: Sequence[str], key_flags: Sequence[flags.FlagHolder]) -> None:
    if len(arguments) > 1:
        raise UserError(f"unexpected argument {arguments[1]!r}: options are written --name=value")
    own = {holder.name for holder in key_flags}
    defining = f"{__package__.rpartition('.')[0]}.flags"
    for flag in flags.FLAGS.flags_by_module_dict()[defining]:
        if flag.present and flag.name not in own:
            raise UserError(f"--{flag.name} is not a flag of this command; see --help")


def _fail(message: str) -> int:
    print(f"error: {message}", file=sys.stderr)
    return 1


def package_name() -> str:
    """Returns the name of the project's package, for messages that quote a command."""
    return __package__.partition(".")[0]


def print_result(result: dict[str, Any]) -> None:
    """Prints the last line of a command on standard output: one JSON object."""
    print(json.dumps(result), flush=True)

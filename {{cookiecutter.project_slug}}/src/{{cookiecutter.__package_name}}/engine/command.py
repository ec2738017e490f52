"""Runs a command: parses its flags, and turns what a user can put right into one line and exit status 1."""

import contextlib
import difflib
import io
import logging as python_logging
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from absl import app, flags, logging
from absl.testing import flagsaver

from .errors import UserError
from .system.files import to_json, write_text

FLAGS_FILE = "flags.txt"
STOPPED = 42
"""Exit status of a training that a signal stopped after saving: the same command goes on."""
_GONE = "%s: flag --%s no longer exists and is left out"
_INTERRUPTED = 128 + 2  # by SIGINT, outside of the training loop: nothing was begun


def run(main: Callable[[Sequence[str]], int | None], key_flags: Sequence[flags.FlagHolder]) -> None:
    """Runs ``main`` through ``absl.app.run``.

    Args:
        main: the command; what it returns is the exit status.
        key_flags: the flags of this command, which ``--help`` lists; any other of the project is refused.
    """
    for stream in (sys.stdout, sys.stderr):  # a file's name may hold what the terminal cannot show
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    for holder in key_flags:
        flags.FLAGS.register_key_flag_for_module(sys.argv[0], flags.FLAGS[holder.name])
    given, gone = _without_gone_flags(sys.argv)

    def guarded(arguments: Sequence[str]) -> int | None:
        logging.set_verbosity(max(logging.get_verbosity(), logging.INFO))
        logging.get_absl_handler().setFormatter(
            python_logging.Formatter("%(asctime)s %(message)s", "%H:%M:%S")
        )
        for path, name in gone:
            logging.warning(_GONE, path, name)
        try:
            _refuse_foreign(arguments, key_flags)
            return main(arguments)
        except UserError as error:  # AutoGraph puts a stack trace before the message
            return fail(str(error).rpartition("UserError: ")[2])
        except KeyboardInterrupt:
            return _INTERRUPTED
        except OSError as error:
            if error.filename is None:
                raise
            return fail(f"{error.filename}: {error.strerror}")
        except Exception as error:
            # TensorFlow wraps what is raised while it reads a batch, and keeps the text only.
            inside = re.search(r"\bUserError: (.*)", str(error))
            if inside is None:
                raise
            return fail(inside[1])

    app.run(guarded, argv=given)


@contextlib.contextmanager
def settings(key_flags: Sequence[flags.FlagHolder], values: Mapping[str, Any]) -> Iterator[None]:
    """Within it, flags have these values, and where none is given their defaults: a command called from Python.

    Args:
        key_flags: the flags of the command.
        values: by name; texts as on the command line, or what they stand for.

    Raises:
        UserError: there is no such flag, or it cannot have this value.
    """
    names = [holder.name for holder in key_flags]
    for name in values:
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1)
            meant = f"; did you mean {near[0]!r}?" if near else ""
            raise UserError(f"there is no setting {name!r}{meant}")
    was_parsed, before = flags.FLAGS.is_parsed(), flagsaver.save_flag_values()
    try:
        for flag in _of_project():
            flag.unparse()
        _parse([argument for item in values.items() for argument in _arguments(*item)])
        for name in values:  # the flags of a run do not replace it, even if it is an empty list
            flags.FLAGS[name].present = 1
        yield
    finally:
        if not was_parsed:
            flags.FLAGS.unparse_flags()
        flagsaver.restore_flag_values(before)


def _parse(arguments: Iterable[str], before: str = "", after: str = "") -> None:
    try:
        flags.FLAGS([sys.argv[0], *arguments])
    except flags.Error as error:
        raise UserError(f"{before}{error}{after}") from None


def _of_project() -> list[flags.Flag]:
    package = f"{__package__.rpartition('.')[0]}."
    by_module = flags.FLAGS.flags_by_module_dict()
    return [f for module, own in by_module.items() if module.startswith(package) for f in own]


def _arguments(name: str, value: Any) -> list[str]:
    """Returns the arguments of a command line that give a flag this value."""
    flag, listed = flags.FLAGS[name], isinstance(value, list | tuple)
    if value is None and flag.default is not None:
        raise UserError(f"{name}=None: must have a value, such as {flag.default!r}")
    if value is None or (listed and isinstance(flag, flags.MultiFlag)):
        return [f"--{name}={part}" for part in value or ()]
    return [f"--{name}={','.join(map(str, value)) if listed else value}"]


def read_flags_of_run(model_dir: str) -> None:
    """Takes over the flags that a run was trained with, save those given on the command line.

    Raises:
        UserError: ``model_dir`` is not the folder of a run, or its flag file is damaged.
    """
    path = Path(model_dir) / FLAGS_FILE
    if not path.is_file():
        raise UserError(
            f"--model_dir={model_dir}: no {FLAGS_FILE} there, so it is not the folder of a run; "
            "name one that `train` wrote"
        )
    taken = []
    for name, lines in _by_name(_read(path)).items():
        if name not in flags.FLAGS:
            logging.warning(_GONE, path, name)
        elif not flags.FLAGS[name].present:
            taken += lines
    _parse(taken, f"{path}: ", "; give another value on the command line")


def write_flags(model_dir: str, key_flags: Sequence[flags.FlagHolder]) -> None:
    """Writes the flag file that repeats the run: ``--flagfile=<model_dir>/flags.txt``."""
    write_text(Path(model_dir) / FLAGS_FILE, _flag_file(key_flags))


def flag_values(key_flags: Sequence[flags.FlagHolder]) -> dict[str, bool | int | float | str]:
    """Returns the values of flags by name, for a table: lists as texts, and what is not given as an empty one."""
    values = {holder.name: holder.value for holder in key_flags}
    plain = bool | int | float | str
    return {k: v if isinstance(v, plain) else ",".join(v or []) for k, v in values.items()}


def changed_flags(model_dir: str, key_flags: Sequence[flags.FlagHolder]) -> dict[str, list[str]]:
    """Returns what differs from the flag file of the run: by flag, its line before and now."""
    path = Path(model_dir) / FLAGS_FILE
    before = _by_name(_read(path) if path.exists() else "")
    now = _by_name(_flag_file(key_flags))
    return {
        name: ["\n".join(lines.get(name, [])) for lines in (before, now)]
        for name in sorted(before.keys() | now.keys())
        if before and before.get(name) != now.get(name)
    }


def flag_lines(key_flags: Iterable[flags.FlagHolder]) -> dict[str, str]:
    """Returns the line of a flag file for each flag, by name; a flag without a value has none of its own."""
    return {
        holder.name: flags.FLAGS[holder.name].serialize() or f"no --{holder.name}"
        for holder in key_flags
    }


def _flag_file(key_flags: Sequence[flags.FlagHolder]) -> str:
    lines = (flags.FLAGS[holder.name].serialize() for holder in key_flags)
    return "".join(f"{line}\n" for line in lines if line)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise UserError(
            f"{path}: damaged, it is not text; delete it and run `train` with the flags of the run"
        ) from None


def _by_name(text: str) -> dict[str, list[str]]:
    """Returns the lines of a flag file by the flag that they set."""
    lines: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            lines.setdefault(_flag_name(line), []).append(line)
    return lines


def _flag_name(line: str) -> str:
    """Returns the name of the flag that a line of a flag file sets; ``--noaugment`` sets ``augment``."""
    name = line.removeprefix("--").partition("=")[0]
    positive = name.removeprefix("no")
    return positive if name not in flags.FLAGS and positive in flags.FLAGS else name


def _without_gone_flags(argv: Sequence[str]) -> tuple[list[str], list[tuple[Path, str]]]:
    """Puts the lines of a run's flag file in place of ``--flagfile=<run>/flags.txt``, save flags that are gone.

    A run may be older than the code that repeats it. In any other flag file, absl refuses a flag that does not exist.
    """
    kept: list[str] = []
    gone = []
    for argument in argv:
        path = Path(argument.partition("=")[2])
        if re.match("--?flagfile=", argument) and path.name == FLAGS_FILE and path.is_file():
            for name, lines in _by_name(path.read_text(encoding="utf-8", errors="replace")).items():
                if name in flags.FLAGS:
                    kept += lines
                else:
                    gone.append((path, name))
        else:
            kept.append(argument)
    return kept, gone


def _refuse_foreign(arguments: Sequence[str], key_flags: Sequence[flags.FlagHolder]) -> None:
    if len(arguments) > 1:
        raise UserError(f"unexpected argument {arguments[1]!r}: options are written --name=value")
    own = {holder.name for holder in key_flags}
    for flag in _of_project():
        if flag.present and flag.name not in own:
            raise UserError(f"--{flag.name} is not a flag of this command; see --help")


def fail(message: str) -> int:
    """Prints an error in one line on standard error; returns the exit status of any error."""
    # A name or an exception's text may hold line breaks, and TensorFlow's the names of its own parts.
    line = " ".join(message.splitlines())
    line = re.sub(r"\{\{.*?\}\} | \[Op:\w+\]( name:)? ?", "", line)
    print(f"error: {line}", file=sys.stderr, flush=True)
    return 1


def print_line(text: str) -> None:
    """Prints a line of what a command has to say, such as a count, on standard output."""
    print(text, flush=True)


def print_result(result: dict[str, Any]) -> None:
    """Prints the last line of a command on standard output: one JSON object."""
    print_line(to_json(result))

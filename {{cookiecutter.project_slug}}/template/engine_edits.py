"""Says which files of engine/ are not as the template made them: ``uv run python template/engine_edits.py``.

The digests in ``engine.sha256`` come with the project and with each update of the template.
"""

import hashlib
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def digest(path: Path) -> str:
    """Returns the SHA-256 of a file, whatever git makes of its line ends."""
    return hashlib.sha256(path.read_bytes().replace(b"\r\n", b"\n")).hexdigest()


def edits() -> list[str]:
    """Returns a line for each file of the engine that was edited, deleted or added."""
    (engine,) = HERE.parent.glob("src/*/engine")
    lines = (HERE / "engine.sha256").read_text(encoding="utf-8").splitlines()
    made = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    found = {path.relative_to(engine).as_posix(): path for path in engine.rglob("*.py")}
    return [
        *(f"edited: engine/{n}" for n in made if n in found and digest(found[n]) != made[n]),
        *(f"deleted: engine/{n}" for n in made if n not in found),
        *(f"added: engine/{n}" for n in sorted(found) if n not in made),
    ]


def main() -> int:
    """Prints the edits; returns 1 if there are any."""
    lines = edits()
    print("\n".join(lines) if lines else "engine/ is as the template made it")
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main())

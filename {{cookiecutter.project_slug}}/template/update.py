"""Takes the newest version of the template, or one of its tags: ``uv run template/update.py [--checkout=v1.2.0]``.

This is ``cruft update``, prepared so that git can merge. Git merges three versions of a file: yours, the template's new
one and what both came from. The last is not in your repository once you edited the file, and then git can only apply a
patch, which fails where a line near yours changed. So the template's old version is stored first, as objects of git.
"""

# /// script
# requires-python = ">=3.11"
# dependencies = ["cruft==2.16.0"]
# ///

import json
import subprocess
import sys
import tempfile
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]


def git(*arguments: str, stdin: str | None = None) -> str:
    """Runs git in the project and returns what it prints."""
    return subprocess.run(
        ["git", *arguments], cwd=PROJECT, input=stdin, stdout=subprocess.PIPE, text=True, check=True
    ).stdout


def store_old_version() -> None:
    """Stores every file, as the template made it the last time, as an object of git."""
    state = json.loads((PROJECT / ".cruft.json").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as name:
        repository, made, answers = (
            Path(name) / part for part in ("template", "made", "answers.json")
        )
        git("clone", "--quiet", state["template"], str(repository))
        git("-C", str(repository), "checkout", "--quiet", state["commit"])
        answers.write_text(json.dumps(state["context"]), encoding="utf-8")
        source = repository / (state["directory"] or "")
        options = ["--replay-file", str(answers), "--output-dir", str(made)]
        subprocess.run(
            [sys.executable, "-m", "cookiecutter", str(source), *options],
            stdout=subprocess.DEVNULL,
            check=True,
        )
        files = [str(path) for path in made.rglob("*") if path.is_file()]
        git("hash-object", "-w", "--stdin-paths", stdin="\n".join(files))


def main() -> int:
    """Updates the project; returns 1 if something is left to merge by hand."""
    if not (PROJECT / ".cruft.json").exists():
        print("error: no .cruft.json; `uvx cruft link <address of the template>` makes one")
        return 1
    if git("status", "--porcelain"):
        print("error: the project has changes; commit them first, so that the update stands alone")
        return 1
    store_old_version()
    update = ["cruft", "update", "--skip-apply-ask", "--refresh-private-variables"]
    subprocess.run([sys.executable, "-m", *update, *sys.argv[1:]], cwd=PROJECT, check=True)
    conflicts = git("diff", "--name-only", "--diff-filter=U").split()
    rejected = [path.relative_to(PROJECT).as_posix() for path in PROJECT.rglob("*.rej")]
    for path in (*conflicts, *rejected):
        print(f"to merge by hand: {path}")
    return int(bool(conflicts or rejected))


if __name__ == "__main__":
    sys.exit(main())

"""Generate the default project, prepare its data, train it and show the result: python3 scripts/quickstart.py.

Everything goes to `build/`. Run again, it renews the generated files, keeps data and runs, and trains on from there.
"""

import argparse
import json
from pathlib import Path

import environment

DEFAULTS = json.loads((environment.REPOSITORY / "cookiecutter.json").read_text(encoding="utf-8"))


def main() -> None:
    """Run the quick start of README.md, command by command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--output",
        type=Path,
        default=environment.BUILD,
        help="folder for the project (default: build)",
    )
    output = parser.parse_args().output.resolve()
    slug = DEFAULTS["project_name"].lower().replace(" ", "-")
    package = slug.replace("-", "_")
    project = output / slug

    uv = environment.install_uv()
    variables = environment.clean_environment(uv)

    def in_project(*command: str) -> None:
        environment.run([str(uv), "run", *command], folder=project, environment=variables)

    environment.run(
        [
            *(str(uv), "run", "--quiet", "--isolated", "--only-group", "generate", "cookiecutter"),
            *(
                "--default-config",
                "--no-input",
                "--overwrite-if-exists",
                "--output-dir",
                str(output),
                ".",
            ),
        ],
        environment=variables,
    )
    environment.run([str(uv), "sync", "--quiet"], folder=project, environment=variables)
    in_project("python", "-m", f"{package}.prepare", "--source=digits", "--data_dir=data")
    run = "--model_dir=runs/baseline"
    in_project("python", "-m", f"{package}.train", "--data_dir=data", run)
    in_project("python", "-m", f"{package}.evaluate", run, "--split=test")

    print(f"\nA trained project is in {project}. Look at its curves:\n")
    print(f"  cd {project}")
    print("  uv run tensorboard --logdir=runs\n")
    print(f"uv itself is {uv}; to install it for yourself: pip install uv")


if __name__ == "__main__":
    main()

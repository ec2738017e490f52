"""What is generated, for every combination of choices: the right files, fully rendered, with the answers in them."""

import itertools
import re
import tomllib
from pathlib import Path

import pytest
from conftest import CHOICES, COMBINATIONS, LONGEST_SLUG, SHORTEST_SLUG, Bake, BakedProject

FILES = """
.gitattributes
.gitignore
.pre-commit-config.yaml
LICENSE
README.md
conventions/README.md
conventions/clip-after-reduction.md
conventions/flags-bounded-and-documented.md
conventions/flags-defined-in-flags.md
conventions/flags-read-in-entry-points.md
conventions/imports-run-one-way.md
conventions/made-in-engine.md
conventions/names-from-vocab.md
conventions/no-function-in-a-step.md
conventions/no-print.md
conventions/no-tensorflow-1.md
conventions/renamed-in-tensorflow-2.md
conventions/rules/clip-after-reduction.yml
conventions/rules/flags-bounded-and-documented.yml
conventions/rules/flags-defined-in-flags.yml
conventions/rules/flags-read-in-entry-points.yml
conventions/rules/imports-run-one-way.yml
conventions/rules/made-in-engine.yml
conventions/rules/names-from-vocab.yml
conventions/rules/no-function-in-a-step.yml
conventions/rules/no-print.yml
conventions/rules/no-tensorflow-1.yml
conventions/rules/renamed-in-tensorflow-2.yml
conventions/tests/clip-after-reduction-test.yml
conventions/tests/flags-bounded-and-documented-test.yml
conventions/tests/flags-defined-in-flags-test.yml
conventions/tests/flags-read-in-entry-points-test.yml
conventions/tests/imports-run-one-way-test.yml
conventions/tests/made-in-engine-test.yml
conventions/tests/names-from-vocab-test.yml
conventions/tests/no-function-in-a-step-test.yml
conventions/tests/no-print-test.yml
conventions/tests/no-tensorflow-1-test.yml
conventions/tests/renamed-in-tensorflow-2-test.yml
conventions/utils/of-tensorflow.yml
conventions/utils/spelled-string.yml
conventions/utils/tensorflow-itself.yml
launch/local_workers
launch/slurm.sbatch
presets/debug.txt
presets/overfit_one_batch.txt
presets/two_devices_on_cpu.txt
presets/two_gpus.txt
pyproject.toml
sgconfig.yml
src/PACKAGE/__init__.py
src/PACKAGE/engine/__init__.py
src/PACKAGE/engine/batches.py
src/PACKAGE/engine/checkpoints.py
src/PACKAGE/engine/cluster.py
src/PACKAGE/engine/command.py
src/PACKAGE/engine/curves.py
src/PACKAGE/engine/dataset.py
src/PACKAGE/engine/errors.py
src/PACKAGE/engine/events.py
src/PACKAGE/engine/exporting.py
src/PACKAGE/engine/files.py
src/PACKAGE/engine/gradients.py
src/PACKAGE/engine/inputs.py
src/PACKAGE/engine/lock.py
src/PACKAGE/engine/loop.py
src/PACKAGE/engine/manifest.py
src/PACKAGE/engine/metrics.py
src/PACKAGE/engine/mistakes.py
src/PACKAGE/engine/numerics.py
src/PACKAGE/engine/optimizers.py
src/PACKAGE/engine/options.py
src/PACKAGE/engine/paths.py
src/PACKAGE/engine/peers.py
src/PACKAGE/engine/placement.py
src/PACKAGE/engine/plots.py
src/PACKAGE/engine/preparing.py
src/PACKAGE/engine/profiling.py
src/PACKAGE/engine/progress.py
src/PACKAGE/engine/protocols.py
src/PACKAGE/engine/random.py
src/PACKAGE/engine/records.py
src/PACKAGE/engine/replacing.py
src/PACKAGE/engine/report.py
src/PACKAGE/engine/restored.py
src/PACKAGE/engine/saver.py
src/PACKAGE/engine/splits.py
src/PACKAGE/engine/startup.py
src/PACKAGE/engine/state.py
src/PACKAGE/engine/steps.py
src/PACKAGE/engine/summaries.py
src/PACKAGE/engine/tables.py
src/PACKAGE/engine/tfrecord.py
src/PACKAGE/engine/trainable.py
src/PACKAGE/engine/training.py
src/PACKAGE/engine/warm_start.py
src/PACKAGE/evaluate.py
src/PACKAGE/export.py
src/PACKAGE/flags.py
src/PACKAGE/predict.py
src/PACKAGE/train.py
src/PACKAGE/vocab.py
template/engine.sha256
template/engine_edits.py
template/update.py
tests/away.py
tests/comparing.py
tests/conftest.py
tests/engine/test_batches.py
tests/engine/test_checkpoints.py
tests/engine/test_cluster.py
tests/engine/test_command.py
tests/engine/test_dataset.py
tests/engine/test_events.py
tests/engine/test_files.py
tests/engine/test_gradients.py
tests/engine/test_lock.py
tests/engine/test_loop.py
tests/engine/test_manifest.py
tests/engine/test_metrics.py
tests/engine/test_mistakes.py
tests/engine/test_optimizers.py
tests/engine/test_paths.py
tests/engine/test_peers.py
tests/engine/test_placement.py
tests/engine/test_plots.py
tests/engine/test_profiling.py
tests/engine/test_progress.py
tests/engine/test_random.py
tests/engine/test_records.py
tests/engine/test_replacing.py
tests/engine/test_report.py
tests/engine/test_saver.py
tests/engine/test_splits.py
tests/engine/test_startup.py
tests/engine/test_state.py
tests/engine/test_steps.py
tests/engine/test_summaries.py
tests/engine/test_tables.py
tests/engine/test_trainable.py
tests/engine/test_training.py
tests/engine/test_warm_start.py
tests/test_conventions.py
tests/test_devices.py
tests/test_evaluate.py
tests/test_faults.py
tests/test_flags.py
tests/test_names.py
tests/test_train.py
tests/test_vocab.py
tests/test_workers.py
"""
TASK_FILES = {
    "image": """
src/PACKAGE/data.py
src/PACKAGE/inputs.py
src/PACKAGE/model.py
src/PACKAGE/prepare.py
src/PACKAGE/sources.py
src/PACKAGE/task_flags.py
tests/test_data.py
tests/test_example.py
tests/test_export.py
tests/test_model.py
tests/test_predict.py
tests/test_prepare.py
tests/test_sources.py
""",
    "tabular": """
src/PACKAGE/columns.py
src/PACKAGE/data.py
src/PACKAGE/inputs.py
src/PACKAGE/model.py
src/PACKAGE/prepare.py
src/PACKAGE/preprocessing.py
src/PACKAGE/sources.py
src/PACKAGE/target.py
src/PACKAGE/task_flags.py
tests/test_columns.py
tests/test_data.py
tests/test_example.py
tests/test_model.py
tests/test_prepare.py
tests/test_preprocessing.py
tests/test_sources.py
""",
}
CI_FILES = {
    "github": [".github/dependabot.yml", ".github/workflows/ci.yml"],
    "gitlab": [".gitlab-ci.yml", "renovate.json"],
    "none": [],
}
LICENSE_LINES = {
    "MIT": "MIT License",
    "Apache-2.0": "Version 2.0, January 2004",
    "BSD-3-Clause": "BSD 3-Clause License",
    "Proprietary": "All rights reserved.",
}
TEXTS = [
    'Ann "the net" O\'Neil',
    r"C:\new\table",
    "Zoë Ångström, 東京",
    "rocket \N{ROCKET} science",
    "100 % of {this} & <that> # not a comment",
    "ends with a backslash\\",
]


def expected_files(project: BakedProject) -> set[str]:
    paths = f"{FILES} {TASK_FILES[project.answers['task']]} {' '.join(CI_FILES[project.answers['ci']])}".split()
    return {path.replace("PACKAGE", project.package) for path in paths}


def leftovers(text: str) -> list[str]:
    """Return what rendering should have taken away; `${{ }}` is GitHub's."""
    return re.findall(r"cookiecutter(?!\.\*).{0,40}|(?<!\$)\{\{.{0,40}|\{%.{0,40}|\{#.{0,40}", text)


def source_files(package: Path) -> dict[str, bytes]:
    return {
        path.relative_to(package).as_posix(): path.read_bytes()
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


@pytest.fixture(params=COMBINATIONS, ids=lambda answers: "-".join(answers.values()), scope="module")
def combination(request: pytest.FixtureRequest, bake: Bake) -> BakedProject:
    return bake(**request.param)


def test_every_pair_of_choices_is_generated() -> None:
    for one, other in itertools.combinations(CHOICES, 2):
        pairs = {(combination[one], combination[other]) for combination in COMBINATIONS}
        assert pairs == set(itertools.product(CHOICES[one], CHOICES[other]))


def test_has_exactly_the_expected_files(combination: BakedProject) -> None:
    assert combination.files() == expected_files(combination)


def test_leaves_no_template_markers(combination: BakedProject) -> None:
    for path in sorted(combination.files() - {"template/update.py"}):  # which names the tool
        found = leftovers(path) + leftovers(combination.read(path))
        if path.startswith("src/"):  # real Python, copied as it is: braces are its own
            found = [text for text in found if text.startswith("cookiecutter")]
        assert not found, path


def test_has_the_metadata_of_its_answers(combination: BakedProject) -> None:
    answers = combination.answers
    metadata = tomllib.loads(combination.read("pyproject.toml"))["project"]
    license_name = answers["license"]
    assert metadata["name"] == answers["project_slug"]
    assert metadata["requires-python"] == f">={answers['python_version']},<3.14"
    expected = "LicenseRef-Proprietary" if license_name == "Proprietary" else license_name
    assert metadata["license"] == expected
    assert ("classifiers" in metadata) == (license_name == "Proprietary")
    text = combination.read("LICENSE")
    assert LICENSE_LINES[license_name] in text
    assert answers["organization"] in text


def test_empty_folders_are_not_left(combination: BakedProject) -> None:
    assert not [
        path for path in combination.path.rglob("*") if path.is_dir() and not any(path.iterdir())
    ]


@pytest.mark.parametrize("task", CHOICES["task"])
@pytest.mark.parametrize("slug", [SHORTEST_SLUG, "digit-classifier", LONGEST_SLUG])
def test_every_slug_gives_the_same_python(bake: Bake, template: Path, slug: str, task: str) -> None:
    project = bake(project_slug=slug, task=task)
    assert project.path.name == slug
    assert project.files() == expected_files(project)
    [shared] = template.glob("{{*}}/src/{{*}}")
    [own] = template.glob(f"{{{{*}}}}/tasks/{task}/src/{{{{*}}}}")
    assert not source_files(shared).keys() & source_files(own).keys()
    expected = source_files(shared) | source_files(own)
    assert source_files(project.path / "src" / slug.replace("-", "_")) == expected


def test_slug_follows_from_the_name(bake: Bake) -> None:
    assert bake(project_name="Été, à la Plage!").answers["project_slug"] == "ete-a-la-plage"
    assert bake(project_name="Number " * 14 + "1").path.name == "number-number-number-number-number"


@pytest.mark.parametrize("text", TEXTS)
def test_free_text_stands_unchanged_in_every_place(bake: Bake, text: str) -> None:
    project = bake(project_name=text, project_slug="texts", description=text, author_name=text)
    metadata = tomllib.loads(project.read("pyproject.toml"))["project"]
    assert metadata["description"] == text
    assert metadata["authors"] == [{"name": text, "email": "you@example.com"}]
    assert project.read("README.md").startswith(f"# {text}\n\n{text}\n")
    assert f"Copyright (c) {text}\n" in project.read("LICENSE")


def test_two_bakes_are_the_same(bake: Bake) -> None:
    first, second = bake(), bake()
    assert source_files(first.path) == source_files(second.path)


def test_next_commands_are_printed(bake: Bake, capfd: pytest.CaptureFixture[str]) -> None:
    bake(project_slug="my-model")
    printed = capfd.readouterr().out
    assert "cd my-model" in printed
    assert "uv run python -m my_model.train" in printed

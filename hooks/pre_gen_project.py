"""Refuse, before anything is written, every answer that would break the project later.

All problems are reported in one message: the field, its value, the reason and a suggestion. The hook runs with
cookiecutter's own Python, so it needs nothing but the standard library, and it is rendered itself, so its source
spells the template markers as `"{" * 2`.
"""

import json
import re
import sys
import unicodedata
from typing import NamedTuple

# One raw string keeps this file valid Python before rendering; tojson escapes every quote and backslash.
ANSWERS = r"""{{ cookiecutter | tojson }}"""
# What was given on the command line or in a user's config, before cookiecutter rendered it. cruft has no such thing.
GIVEN = r"""{{ _cookiecutter | default({}) | tojson }}"""
# The answers that cookiecutter.json computes from others, as they stand there.
COMPUTED = r"""{% raw %}{
  "project_slug": "{{ cookiecutter.project_name | slugify(max_length=40, word_boundary=True, save_order=True) }}",
  "description":
   "{{ cookiecutter.project_name }}: a TensorFlow model that is prepared, trained and evaluated from the command line.",
  "organization": "{{ cookiecutter.author_name }}"
}{% endraw %}"""

MAX_SLUG_LENGTH = 40
# The free texts and their greatest length; a description made from the longest name fits.
MAX_LENGTH = {
    "project_name": 100,
    "description": 300,
    "author_name": 200,
    "author_email": 200,
    "organization": 200,
}
TEMPLATE_MARKERS = ("{" * 2, "}" * 2, "{" + "%", "%" + "}", "{" + "#", "#" + "}")

SLUG = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
EMAIL = re.compile(
    r"[A-Za-z0-9](?:[A-Za-z0-9_+'-]|\.(?=[A-Za-z0-9_+'-]))*"
    r"@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z]{2,63}"
)

PYTHON_KEYWORDS = frozenset(
    "and as assert async await break case class continue def del elif else except false finally for from global if "
    "import in is lambda match none nonlocal not or pass raise return true try type while with yield".split()
)
# Modules of Python 3.11 to 3.14 that the Python running this hook may not have.
STANDARD_LIBRARY_OF_OTHER_VERSIONS = frozenset(
    "aifc annotationlib asynchat asyncore audioop cgi cgitb chunk compression crypt distutils imghdr imp lib2to3 "
    "mailcap msilib nis nntplib ossaudiodev pipes smtpd sndhdr spwd sunau telnetlib tomllib uu xdrlib".split()
)
# What the generated project installs, by the name of the distribution and of the module.
DEPENDENCIES = frozenset(
    "absl absl_py ast_grep_cli ast_serialize astunparse certifi cfgv charset_normalizer clang cloudpickle codespell "
    "codespell_lib contourpy cuda cycler dateutil distlib execnet filelock flatbuffers fonttools gast google "
    "google_crc32c google_pasta grpc grpcio h5py hatchling identify idna iniconfig jinja2 joblib keras kiwisolver "
    "libclang librt markdown markdown_it markdown_it_py markupsafe matplotlib mdurl ml_dtypes mpl_toolkits mypy "
    "mypy_extensions mypyc namex narwhals nodeenv numpy nvidia opt_einsum optree packaging pasta pathspec pil "
    "pillow pip platformdirs pluggy pre_commit pre_commit_hooks protobuf py pygments pylab pyparsing pytest "
    "pytest_xdist python_dateutil python_discovery pyyaml requests rich ruamel ruamel_yaml ruff scikit_learn scipy "
    "setuptools six sklearn tabulate tensorboard tensorboard_data_server tensorflow termcolor threadpoolctl tqdm "
    "typing_extensions tzdata urllib3 uv virtualenv werkzeug wheel wrapt wrapt_stubs xdist yaml".split()
)
# The modules in tests/ are imported by their plain names.
PROJECT_FOLDERS = frozenset(
    "comparing conftest conventions engine launch licenses presets src test tests".split()
)
WINDOWS_DEVICES = frozenset(
    ["aux", "con", "nul", "prn"] + [f"{port}{n}" for port in ("com", "lpt") for n in range(10)]
)


class Problem(NamedTuple):
    """One answer that cannot be used."""

    field: str
    value: str
    reason: str
    suggestion: str


def slugify(text: str) -> str:
    """Return the nearest usable slug to `text`, possibly empty."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    slug = re.sub(r"[^a-z0-9]+", "-", plain).strip("-").lstrip("0123456789-")
    return slug[:MAX_SLUG_LENGTH].rstrip("-")


def reserved_name(slug: str) -> str:
    """Return what else has the name that `slug` gives the package, or an empty string."""
    name = slug.lower().replace("-", "_")
    if name in PYTHON_KEYWORDS:
        return "is a Python keyword"
    if name in sys.stdlib_module_names or name in STANDARD_LIBRARY_OF_OTHER_VERSIONS:
        return "is a module of Python's standard library, which the package would hide"
    if name in DEPENDENCIES:
        return "is the name of a package that the project installs"
    if name in PROJECT_FOLDERS:
        return "is the name of a folder or test module of the project"
    if name in WINDOWS_DEVICES:
        return "is a device name on Windows, where no folder can have it"
    return ""


def check_slug(slug: str) -> list[Problem]:
    """Check the folder and distribution name, from which the package's name is made."""
    reason = ""
    if not SLUG.fullmatch(slug):
        reason = "must be small letters a-z, digits and single hyphens, starting with a letter"
    elif len(slug) > MAX_SLUG_LENGTH:
        reason = f"has {len(slug)} characters, more than {MAX_SLUG_LENGTH}"
    elif reserved := reserved_name(slug):
        reason = reserved
    if not reason:
        return []
    nearest = slugify(slug)
    if nearest and reserved_name(nearest):
        nearest += "-model"
    return [Problem("project_slug", slug, reason, f"{nearest or 'digit-classifier'!r}")]


def check_text(field: str, value: str) -> list[Problem]:
    """Check a free text, which is written to TOML, Markdown and the licence as it stands."""
    if not value.strip():
        return [Problem(field, value, "is empty", "write at least one word")]
    if len(value) > MAX_LENGTH[field]:
        reason = f"has {len(value)} characters, more than {MAX_LENGTH[field]}"
        return [Problem(field, value, reason, "shorten it; there is room in README.md")]
    if not value.isprintable():
        found = ", ".join(sorted({f"U+{ord(c):04X}" for c in value if not c.isprintable()}))
        clean = " ".join("".join(c if c.isprintable() else " " for c in value).split())
        return [
            Problem(
                field, value, f"holds characters that cannot be printed ({found})", f"{clean!r}"
            )
        ]
    if value != value.strip():
        return [Problem(field, value, "begins or ends with a space", f"{value.strip()!r}")]
    if markers := [marker for marker in TEMPLATE_MARKERS if marker in value]:
        reason = f"holds {' and '.join(markers)}, which templates are written in"
        return [Problem(field, value, reason, "leave the braces out")]
    return []


def check_email(value: str) -> list[Problem]:
    """Check that the address is one that Python's package metadata takes."""
    if EMAIL.fullmatch(value):
        return []
    return [Problem("author_email", value, "is not an e-mail address", "'you@example.com'")]


def check_given(field: str, given: str, computed: str) -> list[Problem]:
    """Check an answer that cookiecutter rendered: `7 * 7` in braces is 49 by now, and would be again at an update."""
    if given == computed or not (markers := [m for m in TEMPLATE_MARKERS if m in given]):
        return []
    reason = f"holds {' and '.join(markers)}, which templates are written in, and was computed"
    return [Problem(field, given, reason, "leave the braces out")]


def find_problems(
    answers: dict[str, str],
    given: dict[str, str] | None = None,
    computed: dict[str, str] | None = None,
) -> list[Problem]:
    """Return every problem of the answers; choices were checked by cookiecutter itself."""
    problems = []
    for field in ("project_slug", *MAX_LENGTH):
        found = check_given(field, (given or {}).get(field, ""), (computed or {}).get(field, ""))
        if not found:
            value = answers[field]
            found = check_slug(value) if field == "project_slug" else check_text(field, value)
        problems += found
    if not any(problem.field == "author_email" for problem in problems):
        problems += check_email(answers["author_email"])
    return problems


def describe(problems: list[Problem]) -> str:
    """Return one message for all problems, in ASCII: a terminal of any encoding can show it."""
    lines = ["", "No project was made; these answers need another value:"]
    for problem in problems:
        lines.append(f"  {problem.field} = {problem.value!a}")
        lines.append(f"      {problem.reason}")
        lines.append(f"      suggestion: {problem.suggestion}")
    return "\n".join(lines).encode("ascii", "backslashreplace").decode()


def main() -> None:
    """Exit with status 1 and the message if any answer cannot be used."""
    problems = find_problems(json.loads(ANSWERS), json.loads(GIVEN), json.loads(COMPUTED))
    if problems:
        sys.exit(describe(problems))


if __name__ == "__main__":
    main()

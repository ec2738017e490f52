"""Set up the tools and run the template's tests: python3 scripts/run_tests.py [pytest's arguments].

Without arguments all tests run, the slow ones too; `-m "not slow"` leaves those out. With `--release` also what takes
too long for each change: the full counts and every combination of which the others are a sample.
"""

import sys

import environment


def main() -> None:
    """Install what is missing and hand over to pytest."""
    uv = environment.install_uv()
    variables = environment.clean_environment(uv)
    environment.run([str(uv), "sync", "--quiet"], environment=variables)
    environment.run([str(uv), "run", "--no-sync", "pytest", *sys.argv[1:]], environment=variables)


if __name__ == "__main__":
    main()

import json
import os
import subprocess
import sys

import pytest

from {{ cookiecutter.__package_name }} import engine
from {{ cookiecutter.__package_name }}.engine.system import startup

POOL = "TF_CPU_ALLOCATOR_USE_BFC"
# Of a process that begins with few open files: which modules came with TensorFlow, and whether the others work;
# the limits of open files, and how many shards a reader keeps open.
FRESH = f"""
import json, resource, sys
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (256, most))
from {startup.__name__} import import_tensorflow
import_tensorflow()
found = dict(imported=sorted(sys.modules.keys() & ("keras", "matplotlib", "sklearn")))
import matplotlib.pyplot, sklearn.base
found |= dict(later=[repr(matplotlib.pyplot.figure), repr(sklearn.base.BaseEstimator)])
from {startup.__package__.rpartition(".")[0]}.data import records
now = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
print(json.dumps(dict(found, most=most, files=now, shards=records._most_open())))
"""

# Prints how many pages the system had to provide for 30 large sums, each in memory that the one before freed.
PAGES = """
import resource
import tensorflow as tf

@tf.function
def total(x):
    return tf.reduce_sum(x + 1.0)

x = tf.ones((4096, 4096))
for _ in range(10):  # until all threads have run
    total(x)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(30):
    total(x)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def in_a_new_process(code, **variables):
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


@pytest.fixture(scope="module")
def fresh():
    """What a new process finds."""
    return json.loads(in_a_new_process(FRESH))


needs_linux = pytest.mark.skipif(
    sys.platform != "linux", reason="other systems count pages and limit open files in other ways"
)


@needs_linux
@pytest.mark.slow
def test_a_step_uses_the_memory_of_the_step_before():
    ours = f"from {startup.__name__} import import_tensorflow; import_tensorflow()"
    pages_of_one_sum = 4096 * 4096 * 4 / os.sysconf("SC_PAGE_SIZE")
    assert int(in_a_new_process(ours + PAGES)) < 2 * pages_of_one_sum


@needs_linux
def test_a_thousand_shards_stay_open_where_the_system_allows_it(fresh):
    most, files = fresh["most"], fresh["files"]
    assert files == (65_536 if most == -1 else min(most, 65_536))
    assert fresh["shards"] == min(4_096, files // 4)


@needs_linux
def test_what_keras_has_no_use_for_here_is_imported_by_those_who_need_it(fresh):
    assert fresh["imported"] == ["keras"]
    assert "function figure" in fresh["later"][0]


@pytest.mark.slow
def test_the_memory_pool_is_left_out_on_request():
    show = f"from {startup.__name__} import *; import_tensorflow(); print(os.environ['{POOL}'])"
    assert in_a_new_process(show, **{POOL: "0"}).strip() == "0"


@pytest.mark.parametrize("name", ["preparing", "splits", "startup", "records", "placement"])
def test_modules_that_projects_import_are_also_where_the_last_release_had_them(name):
    module = getattr(engine, name)
    assert module.__name__.startswith(engine.__name__)
    assert module.__name__.endswith(f".{name}")
    assert module is sys.modules[module.__name__]


def test_a_module_that_is_nowhere_is_an_attribute_error():
    with pytest.raises(ImportError, match="nothing"):
        from {{ cookiecutter.__package_name }}.engine import nothing  # noqa: F401

import os
import subprocess
import sys

import pytest

from {{ cookiecutter.__package_name }}.engine.system import startup

POOL = "TF_CPU_ALLOCATOR_USE_BFC"
# Prints how many pages the system had to provide for 30 large products, each in memory that the one before freed.
PAGES = f"""
from {startup.__name__} import import_tensorflow
import_tensorflow()
import resource
import tensorflow as tf

@tf.function
def product(x):
    return tf.reduce_sum(x @ x)

x = tf.ones((2048, 2048))
product(x)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(30):
    product(x)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""

LATER = f"""
import sys
from {startup.__name__} import import_tensorflow
import_tensorflow()
print(*sorted(sys.modules.keys() & ("keras", "matplotlib", "sklearn")))
import matplotlib.pyplot, sklearn.base
print(matplotlib.pyplot.figure, sklearn.base.BaseEstimator)
"""

# Prints the limits of open files of a process that begins with few, and how many shards a reader keeps open then.
OPEN_FILES = f"""
import resource
before, most = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (256, most))
from {startup.__name__} import import_tensorflow
import_tensorflow()
from {startup.__package__.rpartition(".")[0]}.data import records
print(most, resource.getrlimit(resource.RLIMIT_NOFILE)[0], records._most_open())
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


@pytest.mark.skipif(sys.platform != "linux", reason="other systems count pages in another way")
def test_a_step_uses_the_memory_of_the_step_before():
    pages_of_one_product = 2048 * 2048 * 4 / os.sysconf("SC_PAGE_SIZE")
    assert int(in_a_new_process(PAGES)) < 2 * pages_of_one_product


@pytest.mark.skipif(sys.platform != "linux", reason="other systems limit open files in other ways")
def test_a_thousand_shards_stay_open_where_the_system_allows_it():
    most, files, shards = map(int, in_a_new_process(OPEN_FILES).split())
    assert files == (65_536 if most == -1 else min(most, 65_536))
    assert shards == min(4_096, files // 4)


def test_what_keras_has_no_use_for_here_is_imported_by_those_who_need_it():
    first, second = in_a_new_process(LATER).splitlines()
    assert first == "keras"
    assert "function figure" in second


def test_the_memory_pool_is_left_out_on_request():
    show = f"from {startup.__name__} import *; import_tensorflow(); print(os.environ['{POOL}'])"
    assert in_a_new_process(show, **{POOL: "0"}).strip() == "0"

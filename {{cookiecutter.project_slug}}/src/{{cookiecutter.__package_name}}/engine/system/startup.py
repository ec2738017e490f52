"""Imports TensorFlow so that commands start fast, steps reuse their memory and shards stay open.

Everything that trains or predicts calls ``import_tensorflow`` before it imports anything that needs TensorFlow.
"""

import contextlib
import ctypes
import gc
import os
import sys

# Keras imports them where it finds them, for wrappers that nothing here uses: a third of the time to import it all.
_LATER = ("matplotlib", "sklearn")
_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4  # of glibc's malloc.h
_OPEN_FILES = 65_536


def import_tensorflow() -> None:
    """Imports TensorFlow; variables of the environment that configure it are kept."""
    if "tensorflow" in sys.modules:
        return
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # its start-up messages
    _keep_memory()
    _allow_open_files()
    hidden = [name for name in _LATER if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]  # None makes an import fail
    gc.disable()
    try:
        import tensorflow  # noqa: F401
    finally:
        for name in hidden:
            del sys.modules[name]
        gc.freeze()  # modules are never freed: collections need not look at them
        gc.enable()


def _keep_memory() -> None:
    """Keeps in the process what a step frees, for the next step.

    On a CPU, TensorFlow allocates with glibc, which returns large blocks to the system once they are free: each step
    then touches new pages, which the system has to clear. Instead, tensors come from the allocator that TensorFlow
    has for GPUs, limited by the machine's memory, and glibc keeps the rest.
    """
    os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "1")
    if sys.platform != "linux":
        return
    megabytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    os.environ.setdefault("TF_CPU_BFC_MEM_LIMIT_IN_MB", str(megabytes))
    with contextlib.suppress(AttributeError):  # another C library
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_MMAP_MAX, 0)
        mallopt(_M_TRIM_THRESHOLD, 2**31 - 1)


def _allow_open_files() -> None:
    """Raises the limit of open files as far as it goes: with the usual one, shards would be closed."""
    if sys.platform == "win32":
        return
    import resource

    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _OPEN_FILES if most == resource.RLIM_INFINITY else min(_OPEN_FILES, most)
    if now != resource.RLIM_INFINITY and now < wanted:
        with contextlib.suppress(ValueError, OSError):  # macOS has another limit behind this one
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))

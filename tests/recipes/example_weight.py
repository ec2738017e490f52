from typing import Any


def check(tried: Any) -> None:
    pass

# Tests and benchmarks alone use it, and it has no types: what pyright infers from its source costs more than it tells.
from typing import Any

def __getattr__(name: str) -> Any: ...

# Its two thousand files cost a quarter of pyright's time, and src imports it by name, untyped.
from typing import Any

def __getattr__(name: str) -> Any: ...

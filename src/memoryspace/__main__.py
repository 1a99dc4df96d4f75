"""``python -m memoryspace`` is the command ``memoryspace``."""

from .cli import main

main()

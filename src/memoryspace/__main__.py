"""Run the ``memoryspace`` command with ``python -m memoryspace``."""

from .cli import main

main()

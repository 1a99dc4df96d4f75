"""``main``: runs a command, and turns every end of it into an exit code and at most one line."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from .exits import Code, NothingFound, code_of, is_expected
from .plain import one_line

PROGRAM = "memoryspace"
TRACEBACK = "MEMORYSPACE_TRACEBACK"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command with ``arguments``, or with ``sys.argv``.

    Raises:
        SystemExit: With the exit code, if that is not 0.
    """
    given = sys.argv[1:] if arguments is None else list(arguments)
    _accept_any_text()
    try:
        code = _run(given)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has seen enough, as `head` has
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at exit
        code = 1
    except KeyboardInterrupt:
        code = Code.INTERRUPTED
    if code != Code.DONE:
        sys.exit(code)


def _run(given: Sequence[str]) -> int | str:
    """Run a command and return what ``sys.exit`` takes."""
    from .app import command

    try:
        command().main(args=list(given), prog_name=PROGRAM)
    except SystemExit as end:  # how Typer and the benchmarks end
        return Code.DONE if end.code is None else end.code
    except BrokenPipeError:
        raise
    except Exception as error:
        if os.environ.get(TRACEBACK):
            raise
        _tell(error)
        return code_of(error)
    return Code.DONE


def _tell(error: Exception) -> None:
    text = one_line(str(error))
    if not is_expected(error):
        text = f"a bug: {type(error).__name__}: {text} ({TRACEBACK}=1 shows where)"
    sign = "" if isinstance(error, NothingFound) else f"{PROGRAM}: "
    sys.stderr.write(f"{sign}{text}\n")


def _accept_any_text() -> None:
    """Write out what the encoding of a terminal lacks, instead of failing on it."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")

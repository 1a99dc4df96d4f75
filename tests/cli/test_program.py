"""The command in a process of its own: pipes, signals, a real terminal, what it loads."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys

from commands import program, run


def test_a_reader_that_has_seen_enough_ends_the_command_quietly() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with program("bench", "list", stdout=writing) as started:
        _, errors = started.communicate()
    os.close(writing)
    assert (started.returncode, errors) == (1, "")


def test_standard_input_and_exit_codes_reach_the_shell() -> None:
    script = (
        'printf "tea\\ncoffee\\n" | "$0" -m memoryspace add - || exit 10\n'
        '"$0" -m memoryspace search xylophone --min-relevance 0.3 2>/dev/null; echo "$?"\n'
    )
    done = subprocess.run(
        ["sh", "-c", script, sys.executable], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    *added, code = done.stdout.splitlines()
    assert [line.split("\t")[0] for line in added] == ["new", "new"]
    assert code == "1"
    assert len(run("list").rows) == 2


def test_ctrl_c_ends_a_command_cleanly_and_keeps_what_was_added() -> None:
    with program("add", "-", "--json") as started:
        assert started.stdin is not None
        assert started.stdout is not None
        started.stdin.write("".join(f"note {number}\n" for number in range(150)))
        started.stdin.flush()
        assert '"new"' in started.stdout.readline()  # a hundred are safe; the rest waits for more
        started.send_signal(signal.SIGINT)
        _, errors = started.communicate()
    assert (started.returncode, errors) == (130, "")
    assert len(run("list", "--limit", "1000").rows) == 100


def test_a_real_terminal_is_asked() -> None:
    memory_id = run("add", "tea", "--json").data["ids"][0]
    ours, theirs = pty.openpty()
    with program("delete", memory_id, stdin=theirs, stdout=theirs, stderr=theirs) as started:
        os.close(theirs)
        shown = b""
        while b"[y/N]" not in shown:
            shown += os.read(ours, 1024)
        os.write(ours, b"y\n")
    os.close(ours)
    assert started.returncode == 0
    assert run("list").rows == []


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys; from memoryspace.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "print(*sys.modules, file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"numpy", "rich.console", "pydantic", "sqlalchemy", "redis", "memoryspace.door"}
    heavy |= {"memoryspace.kernel", "memoryspace.service", "memoryspace.retrieval"}
    assert "Commands:" in done.stdout
    assert not heavy & set(done.stderr.split())

"""Plain data out of a pickle, without unpickling it.

Unpickling calls whatever the data names. This reads the same opcodes but builds only dicts, lists,
texts, numbers and bytes: where the pickle names a class or calls something, the result is a
``Thing`` that holds its state, and nothing is imported or called.
"""

from __future__ import annotations

import pickletools
from typing import Any

from ...errors import ImportRefused

MAX_BYTES = 16 << 20
MAX_STEPS = 2_000_000

_MARK = object()
_PUSHED = frozenset(
    [
        "INT",
        "BININT",
        "BININT1",
        "BININT2",
        "LONG",
        "LONG1",
        "LONG4",
        "STRING",
        "BINSTRING",
        "SHORT_BINSTRING",
        "BINBYTES",
        "SHORT_BINBYTES",
        "BINBYTES8",
        "BYTEARRAY8",
        "UNICODE",
        "SHORT_BINUNICODE",
        "BINUNICODE",
        "BINUNICODE8",
        "FLOAT",
        "BINFLOAT",
    ]
)
_IGNORED = frozenset(["PROTO", "FRAME"])
_PLAIN = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}


class Thing:
    """Something that a pickle would have built: what it was made from, and its state."""

    def __init__(self, made_of: Any = None) -> None:
        self.made_of = made_of
        self.state: Any = None


class _Reader:
    """The stack and the memo of a pickle."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def step(self, name: str, argument: Any) -> None:
        if name in _PUSHED:
            self.stack.append(argument)
        elif name in _PLAIN:
            self.stack.append(_PLAIN[name])
        elif name not in _IGNORED:
            getattr(self, f"_{name.lower()}")(argument)

    def _mark(self, _: Any) -> None:
        self.stack.append(_MARK)

    def _pop(self, _: Any) -> None:
        self.stack.pop()

    def _pop_mark(self, _: Any) -> None:
        self._to_mark()

    def _dup(self, _: Any) -> None:
        self.stack.append(self.stack[-1])

    def _memoize(self, _: Any) -> None:
        self.memo[len(self.memo)] = self.stack[-1]

    def _put(self, index: Any) -> None:
        self.memo[int(index)] = self.stack[-1]

    _binput = _long_binput = _put

    def _get(self, index: Any) -> None:
        self.stack.append(self.memo[int(index)])

    _binget = _long_binget = _get

    def _empty_dict(self, _: Any) -> None:
        self.stack.append({})

    def _empty_list(self, _: Any) -> None:
        self.stack.append([])

    _empty_set = _empty_list

    def _empty_tuple(self, _: Any) -> None:
        self.stack.append(())

    def _dict(self, _: Any) -> None:
        self.stack.append(_pairs(self._to_mark()))

    def _list(self, _: Any) -> None:
        self.stack.append(self._to_mark())

    def _tuple(self, _: Any) -> None:
        self.stack.append(tuple(self._to_mark()))

    _frozenset = _tuple

    def _tuple1(self, _: Any) -> None:
        self._last_as_tuple(1)

    def _tuple2(self, _: Any) -> None:
        self._last_as_tuple(2)

    def _tuple3(self, _: Any) -> None:
        self._last_as_tuple(3)

    def _setitem(self, _: Any) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self._into([key, value])

    def _setitems(self, _: Any) -> None:
        self._into(self._to_mark())

    def _append(self, _: Any) -> None:
        value = self.stack.pop()
        self._extend([value])

    def _appends(self, _: Any) -> None:
        self._extend(self._to_mark())

    _additems = _appends

    def _global(self, name: Any) -> None:
        self.stack.append(Thing(name))

    def _stack_global(self, _: Any) -> None:
        self._last_as_tuple(2)
        self.stack.append(Thing(self.stack.pop()))

    def _reduce(self, _: Any) -> None:
        arguments = self.stack.pop()
        self.stack.pop()
        self.stack.append(Thing(arguments))

    _newobj = _reduce

    def _newobj_ex(self, _: Any) -> None:
        self.stack.pop()
        self._reduce(None)

    def _build(self, _: Any) -> None:
        state = self.stack.pop()
        if isinstance(self.stack[-1], Thing):
            self.stack[-1].state = state

    def _to_mark(self) -> list[Any]:
        taken: list[Any] = []
        while (each := self.stack.pop()) is not _MARK:
            taken.append(each)
        return taken[::-1]

    def _last_as_tuple(self, size: int) -> None:
        last = tuple(self.stack[-size:])
        del self.stack[-size:]
        self.stack.append(last)

    def _into(self, items: list[Any]) -> None:
        if isinstance(self.stack[-1], dict):
            self.stack[-1].update(_pairs(items))

    def _extend(self, items: list[Any]) -> None:
        if isinstance(self.stack[-1], list):
            self.stack[-1].extend(items)


def plain_data(data: bytes, name: str) -> Any:
    """Return what a pickle holds, as far as it is plain data.

    Args:
        data: The pickle.
        name: What it is, for errors.

    Raises:
        ImportRefused: It is damaged, too large, or takes too many steps.
    """
    if len(data) > MAX_BYTES:
        raise ImportRefused(f"{name}: it takes {len(data)} bytes, more than {MAX_BYTES}")
    reader = _Reader()
    try:
        for step, (opcode, argument, _) in enumerate(pickletools.genops(data)):
            if opcode.name == "STOP":
                return reader.stack.pop()
            if step > MAX_STEPS:
                break
            reader.step(opcode.name, argument)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, UnicodeError) as error:
        raise ImportRefused(f"{name}: it cannot be read ({type(error).__name__})") from None
    raise ImportRefused(f"{name}: it is cut off, or takes too many steps")


def _pairs(items: list[Any]) -> dict[Any, Any]:
    keys = items[::2]
    if len(items) % 2 or not all(isinstance(key, str | int | tuple) for key in keys):
        raise ValueError("a dict with unusual keys")
    return dict(zip(keys, items[1::2], strict=True))

"""The names of keys. All keys of a user are in one slot of a cluster, by their hash tag.

    <prefix>user:{<user>}:sessions                   the names of the user's sessions
    <prefix>user:{<user>}:session:<session>:<part>   the parts of a session
    <prefix>users:{<tag>}                            the users of one slot, by name
    <prefix>seq:{<tag>}                              the last seq of any user of the slot
    <prefix>answer:{<tag>}:<change>                  the answer of a recent change

The tag is a number that is in the same slot as the user. So one script writes all of these, and no
name of a user outlives the user's data.
"""

from __future__ import annotations

import re
import threading
from binascii import crc_hqx
from itertools import count

from ...errors import InvalidInput
from ...message import new_id

SLOTS = 16384  # of every cluster
PARTS = ("records", "order", "marks", "index", "expiry", "vectors", "stamp")  # of a session

_ESCAPES = {"%": "%25", ":": "%3A", "{": "%7B", "}": "%7D"}
_ESCAPED = str.maketrans(_ESCAPES)
_WHOLE_TAG = re.compile(r"[^{]*\{[^}]+\}")

_numbers = count()
_tags: dict[int, int] = {}  # slot → the first number in it
_tagging = threading.Lock()


def escaped(id_: str) -> str:
    """Escape an id for use in a key: different ids never form the same key or end a hash tag."""
    return id_.translate(_ESCAPED)


def unescaped(part: str) -> str:
    """Undo ``escaped``."""
    for raw, code in reversed(_ESCAPES.items()):
        part = part.replace(code, raw)
    return part


def slot_of(name: str) -> int:
    """Return the slot of a hash tag."""
    return crc_hqx(name.encode(), 0) % SLOTS


def tag_of(slot: int) -> str:
    """Return the tag of the list of the users of a slot: the least number that is in the slot."""
    with _tagging:
        while slot not in _tags:
            number = next(_numbers)
            _tags.setdefault(slot_of(str(number)), number)
        return str(_tags[slot])


def base_of(prefix: str, name: str) -> str:
    """Return what all keys of a user begin with; the name is escaped."""
    return f"{prefix}user:{{{name}}}:"


def bucket_of(prefix: str, tag: str) -> str:
    """Return the key of the list of the users of one slot."""
    return f"{prefix}users:{{{tag}}}"


def keys_to_read(prefix: str, tag: str) -> tuple[str, str]:
    """Return the keys that a reading script names: a counter, and one that never exists.

    A server that is giving a slot away refuses a script that names several keys and lacks one. It
    would otherwise start the script, and fail in the middle at a key that has already moved.
    """
    return f"{prefix}seq:{{{tag}}}", f"{prefix}absent:{{{tag}}}"


def keys_to_change(prefix: str, tag: str) -> tuple[str, str]:
    """Return the keys that a changing script names: a counter, and a new one for its answer."""
    return f"{prefix}seq:{{{tag}}}", f"{prefix}answer:{{{tag}}}:{new_id()}"


def checked_prefix(prefix: str) -> str:
    """Return the prefix if it leaves the hash tags of keys intact; raise ``InvalidInput``."""
    if "{" in prefix and not _WHOLE_TAG.match(prefix):
        raise InvalidInput(
            f"the prefix {prefix!r} has a brace that would end up in the hash tag of every key; "
            "leave it out, or write a whole tag such as '{app}:' to have all users in one slot"
        )
    return prefix

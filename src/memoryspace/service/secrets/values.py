"""Checks of values: whether a word or number is a secret of a kind or only looks like one.

"My password is weak", "password: str" and "the pin is 2000 metres away" contain no secret.
"""

from __future__ import annotations

import re

from msgspec import Struct

SET_APART = ","  # the link of a value that follows after a comma, a few words later


class Value(Struct, frozen=True):
    """Text in the position of a secret.

    ``link`` is the text between name and value ("" if the value follows directly), ``after`` the
    text behind the value.
    """

    text: str
    link: str = ""
    is_quoted: bool = False
    after: str = ""


_SYMBOLS = "!@#$%^&*+~?="
_UNIT = re.compile(
    r"[\s-]?(?:characters?|chars?|digits?|letters?|words?|times|days?|months?|years?|hours?|minutes?"
    r"|encoded|hashed|encrypted|protected|bits?|long|people|users|met(?:er|re)s?|km|m|miles?|feet|ft"
    r"|dollars|euros|pounds|bucks|percent|%|[年月日号点位个次遍天岁元块分秒小度条万千台人种字版代米公楼])"
    r"(?![A-Za-z])",
    re.IGNORECASE,
)
_MEASURED = re.compile(
    r"\d+(?:st|nd|rd|th|am|pm|h|hrs?|days?|gb|mb|mbps|ghz|%|-?(?:char|digit|letter|word|day|month"
    r"|year|hour|minute|step|factor|bit)\w{0,8})",
    re.IGNORECASE,
)
_YEAR = re.compile(r"(?:19|20)\d\d")
_DATE = re.compile(r"\d{1,2}[./-]\d{1,2}[./-](?:19|20)?\d\d|(?:19|20)\d\d[./-]\d{1,2}[./-]\d{1,2}")
_PROGRAM = re.compile(  # password = form.password1, password=hash(text), password: new_password
    r"[A-Za-z_$][\w$]*(?:(?:\.|::|->)[A-Za-z_]\w*)*(?:[\[({]|(?<=\D\w)\.\w+$)"
    r"|[a-z_]+(?:[._][a-z_]+)+\d?$"
)
_PLACEHOLDER = re.compile(
    r"your|example|placeholder|x{3}|\*{3}|\.{3}|change.?me|dummy|_here|-here|redacted|env|secret|hash"
    r"|pass_?w|pwd|token|user|key|admin|\$\{|%s|None|null|undefined",
    re.IGNORECASE,
)
_WORD = re.compile(r"[A-Za-zÀ-ɏ][\w'-]{3,}")
_ENDS_CLAUSE = re.compile(
    r"\s*(?:$|[.!?,;)\n，。！？；]|(?:and|but|so|if|in case|ok|okay|lol|haha|btw|please|pls|thanks"
    r"|don'?t|remember|keep|save|note)\b)",
    re.IGNORECASE,
)
_FOLLOWS_NUMBER = re.compile(_ENDS_CLAUSE.pattern + r"|\s*(?:for|of)\b", re.IGNORECASE)
_DESCRIBES = re.compile(r".*(?:ed|ing|ly|able|ible|ful|less)", re.IGNORECASE)
# Words that describe a password in talk and in programs, and are not passwords.
_STATES = frozenset(
    """weak strong wrong right correct incorrect invalid valid good fine okay easy hard simple
    secure safe unsafe insecure long short gone lost forgot forgotten missing empty blank same
    different random unique great perfect awful bad terrible horrible crap garbage trash crazy
    stupid dumb known unknown public private secret written broken hidden shown sent stored stuck
    there here this that what where which like mine yours hers theirs ours only also never always
    maybe still just very super really such about with from needed case none null true false string
    text varchar integer number optional required mandatory default basic must should might will
    would have been again back ready done over under into onto your their something anything nothing
    everything someone visible plain leaked kept reset""".split()  # noqa: SIM905  # words are read more easily than a list of strings
)


def is_password(value: Value) -> bool:
    """Return whether a value is a password: mixed characters, or a word said to be one."""
    text = value.text
    if _is_not_a_value(value):
        return False
    if value.link == "" and text.isdigit():
        return is_pin(value) and _YEAR.fullmatch(text) is None
    if value.link in ("", SET_APART):
        return len(text) >= 6 and _is_mixed(text) and any(map(str.isdigit, text))
    return _is_mixed(text) or (text.isdigit() and len(text) >= 4) or _is_word(value)


def is_pin(value: Value) -> bool:
    """Return whether a value is a PIN."""
    if value.link == "" and _FOLLOWS_NUMBER.match(value.after) is None:
        return False  # "pin 5000 flyers on the board"
    return 4 <= len(value.text) <= 8 and value.text.isdigit() and not _is_not_a_value(value)


def is_code(value: Value) -> bool:
    """Return whether a value is the code of a lock or of a card."""
    digits = sum(map(str.isdigit, value.text))
    is_like = re.fullmatch(r"[#*]?[A-Za-z]?\d[\d -]{2,11}[A-Za-z]?[#*]?", value.text) is not None
    return is_like and 3 <= digits <= 10 and not _is_not_a_value(value)


def is_lone_code(value: Value) -> bool:
    """Return whether a number is the code of the lock named before it, and nothing else."""
    is_number = is_code(value) and len(value.text) >= 4 and _YEAR.fullmatch(value.text) is None
    return is_number and _FOLLOWS_NUMBER.match(value.after) is not None


def is_key(value: Value) -> bool:
    """Return whether a value is a key or a token for a program."""
    text = value.text
    is_long = len(text) >= (8 if value.link != "" else 12)
    has_both = any(map(str.isdigit, text)) and any(map(str.isalpha, text))
    return is_long and has_both and not _is_not_a_value(value)


def is_account(value: Value) -> bool:
    """Return whether a value is an account number."""
    digits = sum(map(str.isdigit, value.text))
    least = 5 if any(map(str.isalpha, value.text)) else 6
    return digits >= least and not _is_not_a_value(value)


def is_identity(value: Value) -> bool:
    """Return whether a value is a personal id number, and not the expiry date of a document."""
    return is_account(value) and _DATE.fullmatch(value.text) is None


def is_wifi(value: Value) -> bool:
    """Return whether a value is a Wi-Fi password, which has at least eight characters."""
    return (
        len(value.text) >= 8 and value.link != "" and _is_mixed(value.text) and is_password(value)
    )


def _is_not_a_value(value: Value) -> bool:
    text = value.text
    if value.link == SET_APART and (_YEAR.fullmatch(text) or not _ENDS_CLAUSE.match(value.after)):
        return True
    if _UNIT.match(value.after) is not None or _MEASURED.fullmatch(text) is not None:
        return True
    if not value.is_quoted and value.link not in ("is", "") and _PROGRAM.match(text) is not None:
        return True
    return _PLACEHOLDER.search(text) is not None and not any(map(str.isdigit, text))


def _is_mixed(text: str) -> bool:
    """Return whether a text mixes letters, digits and symbols as ordinary words do not."""
    inner = text.rstrip("!?")
    digits = any(map(str.isdigit, inner))
    letters = any(map(str.isalpha, inner))
    symbols = any(each in _SYMBOLS for each in inner)
    return len(text) >= 4 and (digits + letters + symbols) >= 2


def _is_word(value: Value) -> bool:
    word = value.text.rstrip("!?")
    if value.is_quoted and " " in word:
        return True
    if _WORD.fullmatch(word) is None or word.lower() in _STATES or _DESCRIBES.fullmatch(word):
        return False
    rest = value.text[len(word) :] + value.after
    return value.is_quoted or _ENDS_CLAUSE.match(rest) is not None

"""The table of English names of secrets, with the form of their values."""

from __future__ import annotations

import re
from collections.abc import Callable

from msgspec import Struct

from .formats import ACCOUNT, CODE, IDENTITY, KEY, PASSWORD
from .values import (
    Value,
    is_account,
    is_code,
    is_identity,
    is_key,
    is_lone_code,
    is_password,
    is_pin,
    is_wifi,
)

PIN = "PIN"
WIFI = "wifi password"

TOKEN = r"[A-Za-z0-9À-ɏ!#$%&()*+./:=?@\[\]^_{|}~\\-]{3,200}"
_NUMBER = (
    r"(?:[A-Za-z]{1,3}[ -]|[A-Za-z]{0,6})\d[\dA-Za-z]{0,33}"
    r"(?:[ .-][\dA-Za-z]{0,4}\d[\dA-Za-z]{0,8}){0,6}"
)

_COMBINATION = rf"\d{{1,2}}(?:[ -]\d{{1,2}}){{2,3}}(?!\d)|{TOKEN}"

_LOCKS = r"""(?:door|gate|garage|alarm|entry|entrance|access|building|lock|locker|lock\s?box
    |key\s?box|key\s?safe|safe|keypad|security|unlock|verification|log-?in|2fa|otp|one[-\s]time
    |authentication|backup|recovery|buzzer|intercom|vault|house|flat|apartment|shed|bike|cabin)"""
_OPENERS = r"(?:code|combo|combination)"
_NO_OPENER = "".join(
    rf"(?<!{each}\s)"
    for each in ("zip", "area", "post", "postal", "promo", "discount", "error", "dress", "source")
)


class Names(Struct, frozen=True):
    """The names of a kind of secret.

    Every text with such a name contains one of the ``stems``. ``value`` matches a possible value,
    ``fits`` decides whether it is one.
    """

    kind: str
    stems: tuple[str, ...]
    pattern: re.Pattern[str]
    value: re.Pattern[str]
    fits: Callable[[Value], bool]


def _row(kind: str, stems: str, names: str, value: str, fits: Callable[[Value], bool]) -> Names:
    pattern = rf"(?<![A-Za-z0-9])(?:{names})(?![A-Za-z0-9_])"
    compiled = re.compile(pattern, re.VERBOSE | re.IGNORECASE)
    return Names(kind, tuple(stems.split()), compiled, re.compile(value), fits)


NAMES = (
    _row(
        PASSWORD,
        "pass pw login log-in credentials",
        r"""(?:pass\s?word|pass-?phrase|pass\s?code|passwd|pwd|pw)
            (?!\s(?:manag|generat|reset|polic|field|hash|app|vault|protect|strength|length|rule|hint
              |check))
          | pass(?=\s?[:=]) | (?:log-?in|user(?:name)?|wi-?fi|account)\b[^!?\n]{0,40}?\bpass
          | (?:log-?in|credentials)\b[^!?\n]{0,50}?\s/""",
        TOKEN,
        is_password,
    ),
    _row(
        PIN,
        "pin card atm",
        r"""pin(?:\s(?:code|number|no\.?))?
          | (?:card|atm)\b[^.!?\n]{0,60}?\b(?:my|the|its|secret)\s(?:number|code)
            (?=\D{1,8}\d{4,6}(?!\d))""",
        TOKEN,
        is_pin,
    ),
    _row(
        CODE,
        "code comb cvv cvc",
        rf"""{_LOCKS}\s?{_OPENERS} | cvv2? | cvc
           | {_LOCKS}\b[^.!?\n]{{0,40}}?{_NO_OPENER}\b{_OPENERS}
           | {_OPENERS}\s(?:to|for|of|on|at)\s(?:[\w'’]{{1,20}}\s){{0,4}}?{_LOCKS}""",
        _COMBINATION,
        is_code,
    ),
    _row(
        CODE,
        "keypad lock key gate door opens open",
        rf"""keypad | (?:bike|pad)\s?lock | lock\s?box | key\s?(?:safe|box)
           | (?:unlocks?|opens?)\swith | {_LOCKS}(?=\W{{1,4}}\d{{3,8}}[#*])""",
        _COMBINATION,
        is_lone_code,
    ),
    _row(
        KEY,
        "key token secret bearer",
        r"""(?:api|access|secret|auth|authorization|refresh|client|encryption|licen[cs]e|signing|app
            |deploy|bot|session|private|bearer)[\s_-]?(?:key|token|secret) | token | bearer""",
        TOKEN,
        is_key,
    ),
    _row(
        IDENTITY,
        "ssn social national ni nhs sin personal passport licen tax aadhaar id medicare",
        r"""(?:social\ssecurity|national\s(?:id|identity|insurance)|ni|nhs|sin|passport|medicare|id
            |identity|taxpayer\sid|tax\s(?:id|file)\w{0,12}|personal(?:\sid|\sidenti\w{2,8})?
            |(?:driver'?s?|driving)\slicen[cs]e)(?:\scard)?\s(?:number|no\.?|code)
          | ssn | social(?=\D{1,12}\d{3}-?\d\d-?\d{4}(?!\d)) | social\ssecurity | passport
          | medicare(?:\scard)? | aadhaar | national\sid | tax\sid
          | (?:driver'?s?|driving)\slicen[cs]e""",
        _NUMBER,
        is_identity,
    ),
    _row(
        ACCOUNT,
        "account acct a/c routing sort iban bsb",
        r"""(?:account|acct|a/c)\.?\s(?:number|no\.?|nr\.?) | bank\saccount | acct
          | account(?=\sis\s\d{8}) | iban | bsb | routing\s(?:number|no\.?) | sort\scode""",
        _NUMBER,
        is_account,
    ),
    _row(WIFI, "wifi wi-fi", r"wi-?fi", TOKEN, is_wifi),
)

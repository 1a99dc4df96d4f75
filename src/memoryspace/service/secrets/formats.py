"""Secrets identified by their form: a checksum, a known prefix, PEM armour.

Every repetition is bounded or followed by its terminator, so that the running time is linear.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

CARD = "card number"
KEY = "key or token"
PRIVATE_KEY = "private key"
ACCOUNT = "bank account"
IDENTITY = "national id"
PASSWORD = "password"
CODE = "access code"

Span = tuple[str, int, int]  # kind, start, end

_KEYS = re.compile(
    r"""(?<![A-Za-z0-9_-])(?:
        sk-(?:proj-|ant-|or-)?[A-Za-z0-9_-]{16,300}
      | (?:sk|pk|rk)_(?:live|test)_[A-Za-z0-9]{10,200}
      | gh[pousr]_[A-Za-z0-9]{20,255} | github_pat_[A-Za-z0-9_]{20,255} | glpat-[\w-]{16,100}
      | (?:AKIA|ASIA)[A-Z0-9]{16} | AIza[\w-]{30,60} | ya29\.[\w-]{20,300}
      | xox[abeoprs]-[A-Za-z0-9-]{10,200} | hf_[A-Za-z0-9]{20,100} | npm_[A-Za-z0-9]{30,100}
      | pypi-[\w-]{30,300} | SG\.[\w-]{16,64}\.[\w-]{16,100} | shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32}
      | eyJ[\w-]{8,2000}\.[\w-]{8,8000}\.[\w-]{8,2000}
    )(?![A-Za-z0-9])""",
    re.VERBOSE,
)
_ARMOUR = re.compile(
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----[\s\S]*?"
    r"(?:-----END [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)"
)
_LOGIN = re.compile(r"://[^\s:/@]{1,64}:([^\s@/•]{3,64})@")

_CARD = re.compile(r"(?<![A-Za-z0-9.+-])\d(?:[ -]?\d){13,18}(?![ -]?\d|[A-Za-z])")
_NETWORKS = re.compile(
    r"4(?:\d{15}|\d{18})|(?:5[1-5]|2[2-7])\d{14}|3[47]\d{13}|3[568]\d{14}|6[05]\d{14}|62\d{14,17}"
)
_FOURS = re.compile(r"\d{4}(?:[ -]\d{4}){2,3}[ -]\d{1,4}")
_CARD_CUE = re.compile(
    r"\b(?:cards?|visa|master ?card|amex|debit|maestro)\b"
    r"|(?:银行|信用|储蓄|借记|工资|[工农建中交招]行)卡|卡号|[账帐][号户]",
    re.IGNORECASE,
)
_OTHER_CUE = re.compile(
    r"\b(?:orders?|tracking|invoice|receipt|parcel|shipment|ticket|serial|isbn|ean|imei"
    r"|ref(?:erence)?)\b|订单|单号|运单|快递|流水|编号|手机|电话",
    re.IGNORECASE,
)
_NEAR = 40  # characters before a number that are searched for a word that names it

_IBAN = re.compile(
    r"(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?:[ -]?[A-Z0-9]{4}){2,7}(?:[ -]?[A-Z0-9]{1,3})?(?![A-Za-z0-9])",
    re.IGNORECASE,
)
_LEAST_IBAN = 15
_CHINESE_ID = re.compile(
    r"(?<![A-Za-z0-9])[1-9]\d{5}(?:19|20)\d{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])\d{3}[\dXx]"
    r"(?![A-Za-z0-9])"
)


def by_form(text: str) -> Iterator[Span]:
    """Yield the secrets identified by their form."""
    for kind, pattern in ((PRIVATE_KEY, _ARMOUR), (KEY, _KEYS)):
        for match in pattern.finditer(text):
            yield kind, *match.span()
    for match in _LOGIN.finditer(text):
        yield PASSWORD, *match.span(1)
    for match in _CHINESE_ID.finditer(text):
        if _is_chinese_id(match[0]):
            yield IDENTITY, *match.span()
    yield from _cards(text)
    yield from _ibans(text)


def _cards(text: str) -> Iterator[Span]:
    """Yield card numbers: by network and checksum, or by grouping after a word for a card."""
    for match in _CARD.finditer(text):
        before = text[max(0, match.start() - _NEAR) : match.start()]
        digits = re.sub(r"\D", "", match[0])
        if _OTHER_CUE.search(before) is not None:
            continue
        is_valid = _NETWORKS.fullmatch(digits) is not None and _passes_luhn(digits)
        is_grouped = _FOURS.fullmatch(match[0]) is not None or digits == match[0]
        if is_valid or (is_grouped and _CARD_CUE.search(before) is not None):
            yield CARD, *match.span()


def _ibans(text: str) -> Iterator[Span]:
    for match in _IBAN.finditer(text):
        end = match.end()
        while end is not None:  # the next word may look like its last group
            if _is_iban(text[match.start() : end]):
                yield ACCOUNT, match.start(), end
                break
            end = max(text.rfind(sign, match.start(), end) for sign in " -")
            if end < match.start() + _LEAST_IBAN:
                break


def _passes_luhn(digits: str) -> bool:
    doubled = [int(each) * (2 if place % 2 else 1) for place, each in enumerate(reversed(digits))]
    return sum(each - 9 if each > 9 else each for each in doubled) % 10 == 0


def _is_iban(text: str) -> bool:
    plain = re.sub(r"[ -]", "", text).upper()
    if len(plain) < _LEAST_IBAN or not plain.isascii():
        return False
    return int("".join(str(int(each, 36)) for each in plain[4:] + plain[:4])) % 97 == 1


def _is_chinese_id(text: str) -> bool:
    weighted = sum(int(each) * 2 ** (17 - place) for place, each in enumerate(text[:17]))
    return "10X98765432"[weighted % 11] == text[17].upper()

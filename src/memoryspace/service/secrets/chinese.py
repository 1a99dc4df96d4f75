"""Secrets identified by a Chinese word: 密码是…, 银行卡…, 身份证号….

In Chinese text a value stands out by its letters and digits, so few words need to be known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .formats import ACCOUNT, CODE, IDENTITY, PASSWORD, Span
from .values import Value, is_account, is_password

_AFTER = 24  # characters behind a value that are read
_TOKEN = r"[A-Za-z0-9!#$%&*+./=?@^_~\\-]{4,64}"
_SECRETS = (
    r"(?:密码(?!管理|学|本|锁|箱|保护|强度|错)|口令(?!红包)|密钥|秘钥|(?:验证|校验|动态|安全|解锁|门禁)码"
    r"|(?i:password|passcode|pwd|pin码?|wi-?fi)(?=\s?[\u4e00-\u9fff]))"
)
_NAMES = (
    (PASSWORD, _SECRETS, _TOKEN),
    (CODE, r"(?:门禁|门锁|锁屏|保险[箱柜])", r"[#*]?\d{4,10}[#*]?"),
    (IDENTITY, r"(?:身份证|护照|社保|驾照)(?:卡?号码?)?", r"[A-Za-z]{0,2}\d{7,17}[\dXx]?"),
    (ACCOUNT, r"(?:银行卡|信用卡|储蓄卡|借记卡|工资卡|卡号|[账帐][号户])", r"\d(?:[ -]?\d){11,18}"),
)
_CUES = tuple(
    (kind, re.compile(rf"{name}(?P<link>[^。！？；!?;\n•A-Za-z0-9#*]{{0,12}}?)(?P<value>{value})"))
    for kind, name, value in _NAMES
)
_OWNED = re.compile(
    r"\s?(?:就?是|为|当|做|作为?|设[成为])"
    rf"(?:我|你|咱|他|她|家|的|们|(?i:wi-?fi)|门锁|门禁|银行卡|手机|电脑|登录|支付|新|\s){{0,8}}{_SECRETS}"
)
_LAST_TOKEN = re.compile(rf"(?<![A-Za-z0-9]){_TOKEN}$")
_LINKED = re.compile(r"[是为叫成设改用：:“\"「]了?\s*$")
_DENIED = re.compile(r"不[是要能可用]|别|忘")
_ADVISED = re.compile(r"(?:别|不要|不能|不可)[用拿把以]?\s*$")
_COMMA = re.compile(r"[，,、]")
_PHONE = re.compile(r"1[3-9]\d{9}")


def in_chinese(text: str) -> Iterator[Span]:
    """Yield the secrets identified by a Chinese word."""
    for kind, pattern in _CUES:
        for match in pattern.finditer(text):
            after = text[match.end() : match.end() + _AFTER]
            if _is_secret(kind, Value(match["value"], match["link"], after=after)):
                yield kind, *match.span("value")
    for name in _OWNED.finditer(text):
        before = _LAST_TOKEN.search(text, max(0, name.start() - 64), name.start())
        if before is None or not any(map(str.isdigit, before[0])):
            continue
        if _ADVISED.search(text[max(0, before.start() - 6) : before.start()]) is None:
            yield PASSWORD, *before.span()


def _is_secret(kind: str, value: Value) -> bool:
    """Return whether the value behind a name is a secret, and stated as one."""
    is_linked = _LINKED.search(value.link) is not None
    if _DENIED.search(value.link) is not None or (_COMMA.search(value.link) and not is_linked):
        return False
    if kind == CODE and not (is_linked or {*"#*"} & {*value.text}):
        return False
    if kind in (IDENTITY, ACCOUNT):
        return is_account(Value(value.text, "is", after=value.after))
    if _PHONE.fullmatch(value.text) is not None and not is_linked:
        return False
    has_digit = any(map(str.isdigit, value.text))
    return (has_digit or is_linked) and is_password(Value(value.text, "is", after=value.after))

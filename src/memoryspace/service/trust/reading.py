"""Normalization of text before rules are tried: the text as a person or a model would read it.

Look-alike letters become plain ones and traditional Chinese characters simplified ones. Accents,
invisible characters and stray spaces are removed. Words of the rules that are spelled with digits
or symbols instead of letters are restored; other numbers do not change. The running time is linear.
"""

from __future__ import annotations

import re
import unicodedata

_INVISIBLE = dict.fromkeys(
    [0xAD, 0x34F, 0x61C, 0x180E, *range(0x200B, 0x2010), *range(0x202A, 0x202F),
     *range(0x2060, 0x2070), 0xFEFF, *range(0xFE00, 0xFE10), *range(0xE0000, 0xE0080)]
)  # fmt: skip

_ACCENTS = re.compile("[\u0300-\u036f]+")
_ACCENTED = re.compile("[\u00c0-\u024f\u0300-\u036f\u1e00-\u1eff]")

# Capitals resemble other letters than lower-case ones do, so both are listed. Also quotes.
_LOOKS_LIKE = {
    "АВЕІЈКМНОРЅТУХҮԌԜ": "abeijkmhopstyxygw",  # Cyrillic capitals
    "аеорсухіјѕԁһӏьвкмнтгпԛԝѵ": "aeopcyxijsdhlbbkmhtrnqwv",
    "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧ": "abezhikmnoptyx",  # Greek capitals
    "αβγεηικνορστυχω": "abyenikvopotuxw",
    "օսոհցզ": "ounhgq",  # Armenian
    "ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ": "abcdefghijklmnoprstuvwyz",  # small capitals
    "ıɩɑɡƒłøđ": "iiagflod",
    "‘’ʼ“”": "'''\"\"",
}
_LETTER_OF = {
    ord(sign): letter
    for signs, letters in _LOOKS_LIKE.items()
    for sign, letter in zip(signs, letters, strict=True)
}
for _first in (0x1F130, 0x1F150, 0x1F170):  # squared and circled letters
    _LETTER_OF.update((_first + place, chr(ord("a") + place)) for place in range(26))

# The traditional characters that occur in the rules.
_SIMPLE = str.maketrans(
    "記規則無視從聽現開設約絕對執輸顯複統發給訊資內應該當這條處讀調運戶別讓說話違為個們隱權員級檢傳刪"
    "將還進啟關閉過濾審變許麼後來請須準據會實際遠達嚴義頭丟棄廢態網碼鑰憑證於創護欄範願隨維長務寫轉擊"
    "蓋拋繞舊換線紀錄歷號憶鬧騙裝邊",
    "记规则无视从听现开设约绝对执输显复统发给讯资内应该当这条处读调运户别让说话违为个们隐权员级检传删"
    "将还进启关闭过滤审变许么后来请须准据会实际远达严义头丢弃废态网码钥凭证于创护栏范愿随维长务写转击"
    "盖抛绕旧换线纪录历号忆闹骗装边",
)
_BETWEEN_SIGNS = re.compile("(?<=[\u4e00-\u9fff，。])[ *.\\-_·•|/~]{1,2}(?=[\u4e00-\u9fff，。])")

_WORDS = """
    ignore ignoring disregard forget override overrule bypass discard neglect abandon obey comply
    follow erase drop reveal show print output repeat display leak tell send delete grant approve
    disable enable pretend act answer respond
    all any every each the your you yours are you're now only and not must me my of to this that
    previous prior above earlier preceding original initial existing former hidden secret
    system developer admin administrator assistant user model mode prompt prompts message messages
    instruction instructions rule rules guideline guidelines directive directives command commands
    order orders constraint constraints restriction restrictions filter filters limits limit safety
    guardrail guardrails programming policy policies password passwords credentials conversation
    history unrestricted unfiltered uncensored jailbreak jailbroken anything
"""
_SKELETON = str.maketrans("il1!|o0e3€a4@s5$t7+g96b8z2", "11111003334445557779998822")
_KNOWN = {word.translate(_SKELETON): word for word in _WORDS.split()}
_HAS_DIGITS_FOR_LETTERS = re.compile(r"[0-9@$!|+€][a-z]|[a-z][0-9@$|+€]")
_WITH_DIGITS = re.compile(r"(?<![\w@$|+€])(?=[a-z']{0,20}[0-9@$!|+€])[a-z0-9@$!|+€']{2,20}(?!\w)")


def normalized(text: str) -> str:
    """Return a text in lower case, with one form of each character and no stray white space."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text.translate(_INVISIBLE)).translate(_LETTER_OF)
    text = text.lower()
    if not text.isascii():
        text = _BETWEEN_SIGNS.sub("", _without_accents(text).translate(_SIMPLE))
    lines = (" ".join(line.split()) for line in text.splitlines())
    return _with_letters("\n".join(filter(None, lines)))


def _without_accents(text: str) -> str:
    if _ACCENTED.search(text) is None:
        return text
    apart = _ACCENTS.sub("", unicodedata.normalize("NFD", text))
    return unicodedata.normalize("NFC", apart)


def _with_letters(text: str) -> str:
    """Return a text with letters in place of the digits and symbols used for them.

    The length does not change.
    """
    if _HAS_DIGITS_FOR_LETTERS.search(text) is None:
        return text
    return _WITH_DIGITS.sub(_intended_word, text)


def _intended_word(match: re.Match[str]) -> str:
    word = match[0]
    rest = len(word.rstrip("!"))  # at the end of a word, "!" is an exclamation mark
    meant = _KNOWN.get(word[:rest].translate(_SKELETON))
    if meant is not None:
        return meant + word[rest:]
    return _KNOWN.get(word.translate(_SKELETON), word)

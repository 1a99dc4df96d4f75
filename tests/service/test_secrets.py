"""Secrets in a text: found by form or by word, in English and Chinese; talk about them passes."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryspace.service.secrets import MASK, masked, secrets_in

# Each with the secret between braces. Keys are put together here, so that no scanner takes them
# for somebody's.
FORMS = [
    ("card number", "card {4111 1111 1111 1111} exp 12/27"),
    ("card number", "{5500-0000-0000-0004}"),
    ("card number", "here: {378282246310005}, it's an amex"),
    ("card number", "if my card gets stolen… it's {4929 1180 5533 7742}"),
    ("bank account", "send it to {GB29NWBK60161331926819} please"),
    ("bank account", "it is {DE89 3704 0044 0532 0130 00} thanks"),
    ("national id", "他的证件 {11010519491231002X} 过期了"),
    ("key or token", "use {" + "sk-" + "a1B2" * 6 + "}"),
    ("key or token", "{" + "ghp_" + "a1B2c3" * 6 + "} works"),
    ("key or token", "aws {" + "AKIA" + "Q3EGRXYZ12345678" + "}"),
    ("key or token", "slack {" + "xox" + "b-123456789012-abcdefghij" + "}"),
    (
        "key or token",
        "{" + "eyJ" + "hbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxIn0" + ".c2lnbmF0dXJl" + "}",
    ),
    ("private key", "{-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----} ok"),
    ("private key", "{-----BEGIN PRIVATE KEY-----\nMIIE and no end}"),
    ("password", "postgres://bob:{s3cr3t}@db.local/shop"),
]

ENGLISH = [
    ("password", "my password is {swordfish}"),
    ("password", "my netflix password is {Summer2024!}, don't share"),
    ("password", "password: {hunter2}"),
    ("password", "pw for the portal is {Tulip!929} can you log in"),
    ("password", "Password:\n{Hunter2!x}"),
    ("password", 'the wifi password is "{correct horse}"'),
    ("password", "I changed my email password to {Tr0ub4dor&3} yesterday"),
    ("password", "the password my boss gave me is {Oak_1177}"),
    ("password", '{{"user": "bob", "password": "{hunter22}"}}'),
    ("password", "{hunter2} is my wifi password"),
    ("PIN", "pin for the joint account is {6083}, i should change it"),
    ("PIN", "PIN {7734} for the debit card"),
    ("PIN", "my bank pin, i always forget it, {4480}. jk"),
    ("PIN", "my new card came, my number is {2906}"),
    ("access code", "the gate code's {4417#}"),
    ("access code", "combination to my locker is {24-8-16}"),
    ("access code", "The lockbox is by the bins, code is {4821}"),
    ("access code", "door code here is {7719x} if i get locked out"),
    ("access code", "set the alarm code to {8812}"),
    ("access code", "cvv {123}"),
    ("access code", "cvc on the back says {882}"),
    ("access code", "locker combo {31 7 22}"),
    ("access code", "garage keypad is {4410}"),
    ("access code", "gate: {1904#}"),
    ("access code", "the safe opens with {17-32-05}"),
    ("password", "my phone passcode {258013} if you need it"),
    ("password", "shop login is mara@mail.org / {Pumpkin_88}"),
    ("password", "wifi name HomeNet pass {blueberry77}"),
    ("password", "wifi password at work changed, its now {Orchid-2291}"),
    ("password", "user jkim, password {Maple.Leaf.22}"),
    ("national id", "social is {219-09-9999}"),
    ("national id", "driver's licence {MORGA657054SM9IJ}"),
    ("key or token", "api key is {9f8a7b6c5d4e3f2a1b}"),
    ("national id", "my ssn is {078-05-1120}"),
    ("national id", "personal number {01024085573}, do i need it on the invoice?"),
    ("national id", "passport number {X12345678}"),
    ("bank account", "account number {12345678} for the rent"),
    ("bank account", "sort code {20-45-67}"),
    ("wifi password", "btw new wifi at mine is {MossyLeaf_2020} for when you visit"),
]

CHINESE = [
    ("password", "密码是{abc123}"),
    ("password", "wifi密码：{sunny2020}，记一下"),
    ("password", "门锁密码我设的{7391#}，怕婆婆记不住"),
    ("password", "客户password是 {Tsubaki_5512}, 我怕忘"),
    ("password", "我家wifi password改成 {Kopi-77} 了"),
    ("password", "电脑开机口令 {tiger99}"),
    ("password", "验证码 {482913}"),
    ("password", "{abc12345}是我的密码"),
    ("password", "用 {7788} 当门锁密码"),
    ("password", "门锁换密码了，现在是 {889900}"),
    ("access code", "小区门禁 {#2580#}"),
    ("national id", "护照号码 {E12345678}"),
    ("bank account", "招商银行账号 {621483001234}"),
    ("card number", "银行卡{6217 0028 7001 3345 662}我老记不住"),
]

HARMLESS = """
the pin on the map is wrong
drop a pin at 4500 Main Street
the pin on the map is 2000 metres from here
pin 5000 flyers on the board
a rolling pin from 1950
my order number is 4111111111111111
tracking number 1Z999AA10123456784
isbn 9780306406157
my phone number is 555-867-5309
call me on +44 7700 900123
I was born in 1987
I use a password manager
my password manager is 1Password
I forgot my password
my password is too weak
the password is wrong
the password must be 8 characters long
what's my password?
I changed my password yesterday
the wifi is terrible
wifi is 100mbps here
the wifi router is a TP-Link AX3000
zip code is 90210
error code 5003
promo code SAVE20NOW
my passport expires 12/05/2031
my passport: 12/05/2031
my locker is number 1204
the key is under the mat
the film opens with 1200 extras
my bus pass expires in 2026
the padlock cost 1200 yen
social media has 12000 followers
access tokens expire after 3600 seconds
my student number is 20210033
gate 14 at 18:30
门锁花了1200
门锁是2020年装的
门禁坏了，报修电话62345678
a token of appreciation
my bank account has 12000 dollars
password = request.form['password']
password: str
password=hashed_password
api_key="YOUR_API_KEY_HERE"
the meeting is at 10:30 on 2024-05-11
我忘了密码
密码要8到16位
密码是什么
密码管理器用1Password
密码是2019年设的
别用123456当密码
密码发到13812345678了
我的手机号是13812345678
订单号 6222021234567890123
身份证丢了
银行卡里有12000块
护照2031年到期
""".strip().split("\n")


def split(told: str) -> tuple[str, str]:
    """Return a text, and the secret that stands between its braces."""
    before, _, rest = told.replace("{{", "\x01").replace("}}", "\x02").partition("{")
    secret, _, after = rest.partition("}")
    text = before + secret + after
    return text.replace("\x01", "{").replace("\x02", "}"), secret


@pytest.mark.parametrize(("kind", "told"), [*FORMS, *ENGLISH, *CHINESE])
def test_a_secret_is_found_where_it_stands(kind: str, told: str) -> None:
    text, secret = split(told)
    assert secret in [text[each.start : each.end] for each in secrets_in(text)]
    if told not in [each for _, each in CHINESE]:  # a number may be a card's and an account's
        assert kind in {each.kind for each in secrets_in(text)}


@pytest.mark.parametrize(("kind", "told"), [*FORMS, *ENGLISH, *CHINESE])
def test_a_masked_text_tells_the_secret_no_more(kind: str, told: str) -> None:
    text, secret = split(told)
    assert masked(text) == text.replace(secret, MASK)


@pytest.mark.parametrize("text", HARMLESS)
def test_what_only_speaks_of_secrets_passes(text: str) -> None:
    assert secrets_in(text) == []


def test_a_checksum_that_fails_is_no_card_and_no_account() -> None:
    assert secrets_in("the figure 4111 1111 1111 1112 came up") == []
    assert secrets_in("part GB29NWBK60161331926810 is missing") == []
    assert secrets_in("编 110105194912310021 号") == []


def test_a_secret_is_one_wherever_it_is_repeated() -> None:
    text = "my pin is 6083. yes, 6083! not 60831"
    assert masked(text) == f"my pin is {MASK}. yes, {MASK}! not 60831"


@pytest.mark.parametrize(
    "text", ["", " ", "\n", "\x00", "\ud800 lone", "pin", "密码", "password is"]
)
def test_odd_text_is_no_trouble(text: str) -> None:
    assert masked(text) == text


# No clock: a pattern that takes quadratic time would not come to an end here.
@pytest.mark.parametrize(
    "piece",
    ["pin, ", "password for ", "is Ab12x ", "DE89 3704 ", "door code ", "密码", "1 ", "api_key=",
     "-----BEGIN PRIVATE KEY-----"],
)  # fmt: skip
def test_a_megabyte_of_anything_comes_to_an_end(piece: str) -> None:
    assert secrets_in(piece * (300_000 // len(piece)) + " my pin is 6083")


CUES = [
    "password",
    "pin",
    "my pin",
    "wifi",
    "is",
    ":",
    "=",
    "密码",
    "是",
    "card",
    "for",
    "to",
    "，",
    ",",
]
VALUES = [
    "6083",
    "Hunter2!x",
    "4111 1111 1111 1111",
    "abc123",
    "E12345678",
    "•••",
    "2020年",
    '"a b"',
]
PIECES = st.sampled_from([*CUES, *VALUES, " ", " ", "\n", "."]) | st.text(max_size=6)
TEXTS = st.lists(PIECES, max_size=14).map(" ".join) | st.lists(PIECES, max_size=14).map("".join)


@given(TEXTS)
def test_spans_lie_in_the_text_in_order_and_apart(text: str) -> None:
    found = secrets_in(text)
    ends = [0, *(each.end for each in found)]
    assert all(end <= each.start < each.end for end, each in zip(ends, found, strict=False))
    assert ends[-1] <= len(text)


@given(TEXTS)
def test_masking_changes_nothing_beside_the_secrets_and_leaves_none(text: str) -> None:
    found = secrets_in(text)
    once = text
    for each in reversed(found):
        once = once[: each.start] + MASK + once[each.end :]
    assert masked(text) == masked(once)
    assert secrets_in(masked(text)) == []
    if not found:
        assert masked(text) == text


def texts_of(path: Path) -> Iterator[str]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            for turn in (turn for each in row.get("sessions", ()) for turn in each["turns"]):
                yield turn["text"]
            for turn in (turn for day in row.get("days", ()) for turn in day["turns"]):
                yield from (turn["user"], turn["assistant"])


def test_no_message_of_real_talk_without_secrets_is_marked() -> None:
    folder = os.environ.get("MEMORYSPACE_DATA")
    if folder is None:
        pytest.skip("MEMORYSPACE_DATA names no folder with the data sets")
    for name in ("memorybank_zh_en.jsonl.gz", "locomo_dev.jsonl.gz"):
        texts = list(texts_of(Path(folder, name)))
        assert len(texts) > 2000
        assert [text for text in texts if secrets_in(text)] == []

"""People in a text: by their relation to the speaker, and by name.

A relation is a key: "hubby" and 老公 are both ``husband``, which also counts as ``partner``. A
question asks for the keys of its words and matches texts with these keys: "partner" finds the
husband, "son" finds a kid. Names are keys themselves, in lower case.
"""

from __future__ import annotations

import re

USER = "user"  # the speaker

# key, English words, Chinese words, other keys it also counts as
_RELATIONS = (
    ("wife", "wife missus wifey", "老婆 妻子 媳妇 太太 婆娘 老太婆", "partner"),
    ("husband", "husband hubby", "老公 丈夫 她爸 他爸", "partner"),
    ("girlfriend", "girlfriend gf", "女朋友 女友", "partner"),
    ("boyfriend", "boyfriend bf", "男朋友 男友", "partner"),
    ("partner", "partner spouse fiance fiancee fiancé fiancée", "爱人 对象 那口子 老伴 未婚夫 未婚妻",
     "wife husband girlfriend boyfriend"),
    ("ex", "ex exes", "前夫 前妻 前男友 前女友 前任", ""),
    ("daughter", "daughter daughters", "女儿 闺女 女宝", "child"),
    ("son", "son sons lad lads", "儿子 男宝", "child"),
    ("child", "kid kids child children baby toddler eldest youngest twins", "孩子 宝宝 娃 小孩", "son daughter"),
    ("grandchild", "grandson grandsons granddaughter granddaughters grandchild grandchildren grandkid "
     "grandkids", "孙子 孙女 外孙", ""),
    ("mother", "mum mums mom moms mother ma mama mam", "妈妈 妈 母亲 娘 家母", "parent"),
    ("father", "dad dads father pa papa", "爸爸 爸 父亲 爹 家父", "parent"),
    ("parent", "parent parents folks", "父母 爸妈", "mother father"),
    ("brother", "brother brothers bro", "哥哥 哥 弟弟 弟 细佬", "sibling"),
    ("sister", "sister sisters sis", "姐姐 姐 妹妹 妹", "sibling"),
    ("sibling", "sibling siblings twin", "兄弟姐妹", "brother sister"),
    ("grandmother", "grandma gran granny nan nana grandmother", "奶奶 外婆 姥姥", ""),
    ("grandfather", "grandpa grandad granddad grandfather", "爷爷 外公 姥爷", ""),
    ("in-law", "in-law in-laws", "婆婆 公公 岳父 岳母 丈母娘", ""),
    ("uncle", "uncle uncles", "叔叔 舅舅 伯", ""),
    ("aunt", "aunt aunts auntie aunty", "阿姨 姑姑 姨", ""),
    ("cousin", "cousin cousins", "表哥 表姐 表弟 表妹 堂哥 堂姐 堂弟 堂妹", ""),
    ("niece", "niece nieces nephew nephews", "侄子 侄女 外甥", ""),
    ("friend", "friend friends pal pals mate mates buddy buddies bestie bff", "朋友 闺蜜 哥们 死党 发小", ""),
    ("roommate", "roommate roommates flatmate flatmates roomie housemate housemates", "室友 舍友 合租", ""),
    ("boss", "boss manager supervisor", "老板 领导 上司 主管 店长 站长 经理", ""),
    ("colleague", "colleague colleagues coworker coworkers co-worker workmate workmates",
     "同事 工友 店员 帮手 搭档 助理", ""),
    ("neighbour", "neighbour neighbours neighbor neighbors", "邻居 隔壁", ""),
    ("coach", "coach trainer", "教练", ""),
    ("teacher", "teacher professor tutor", "老师 教授 导师", ""),
    ("doctor", "doctor dr gp specialist therapist", "医生 大夫", ""),
    ("landlord", "landlord landlady", "房东", ""),
    ("dog", "dog dogs pup puppy greyhound labrador terrier mutt collie poodle spaniel hound", "狗 犬 柯基 金毛 泰迪", "pet"),
    ("cat", "cat cats kitten kittens kitty", "猫", "pet"),
    ("pet", "pet pets ferret ferrets bird birds budgie parrot hamster hamsters rabbit rabbits fish horse "
     "snake tortoise", "宠物 鸟 蛇 画眉 兔 仓鼠 龟", "dog cat"),
)  # fmt: skip


def as_relation(term: str) -> str:
    """Return a pattern: 姐 is a relation behind 我, 大 or nothing, and part of a name in 莲姐."""
    if term not in ("哥", "姐", "弟", "妹"):
        return term
    return f"(?:(?<![\u4e00-\u9fff])|(?<=[我的个和跟有是大二三小亲俩两她他兄弟姐])){term}"


_KEYS: dict[str, frozenset[str]] = {}  # word → the keys that a text with it matches
_ASKED: dict[str, str] = {}  # word → the key a question with it asks for
for _key, _english, _chinese, _also in _RELATIONS:
    for _word in (*_english.split(), *_chinese.split()):
        _KEYS[_word] = _KEYS.get(_word, frozenset()) | {_key, *_also.split()}
        _ASKED[_word] = _key

RELATIONS = frozenset(key for key, *_ in _RELATIONS)

_WORD = re.compile(r"[a-zé]+(?:-in-law|-worker)?")
_BORDERLESS = re.compile("[\u4e00-\u9fff]")
_TERMS = sorted((each for each in _KEYS if _BORDERLESS.match(each)), key=len, reverse=True)
_TERM = re.compile("|".join(map(as_relation, _TERMS)))
_NAME = re.compile(r"\b[A-Z][a-zà-ÿ]+\b")
_CALLED = re.compile(
    r"(?:叫做?|大名|名叫|名字是)[“\"「]?([\u4e00-\u9fff]{2,3}?)(?=[，。！,.\s”」的]|$)"
)
_NICKNAME = re.compile(r"[小老阿大][\u4e00-\u9fff](?![\u4e00-\u9fff]?[时候人家学伙])")


def _word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Capitalised words that are not names.
_NO_NAME = _word_set("""
    the this that these those it its i im ive id ill what when where how why who which can could
    would will should please also just not yes yeah no nope back good great big new got had been
    there here then and but so if or because one two three never always still looking need well
    ok okay hello hi hey dear now today tomorrow yesterday my our your his her their he she they
    we you me us is are was were am do does did has have thanks thx morning evening night monday
    tuesday wednesday thursday friday saturday sunday january february march april may june july
    august september october november december any some all both every each first last next after
    before since until while though maybe perhaps anyway btw lol haha oh ah ugh wow sorry news
    update quick ps for from in on at to of with without about as by up down out over again once
    mr mrs ms dr st
""")


def relations_in(text: str) -> frozenset[str]:
    """Return the keys of all people that a text mentions by relation."""
    found = [_KEYS[word] for word in _WORD.findall(text.lower()) if word in _KEYS]
    if not text.isascii():
        found += [_KEYS[term] for term in _TERM.findall(text)]
    return frozenset().union(*found)


def relations_asked(text: str) -> frozenset[str]:
    """Return the keys that a question asks for."""
    found = [_ASKED[word] for word in _WORD.findall(text.lower()) if word in _ASKED]
    if not text.isascii():
        found += [_ASKED[term] for term in _TERM.findall(text)]
    return frozenset(found)


def names_in(text: str) -> frozenset[str]:
    """Return the words that look like names in a text, in lower case."""
    found = {name.lower() for name in _NAME.findall(text)} - _NO_NAME
    if not text.isascii():
        found.update(_CALLED.findall(text))
        found.update(_NICKNAME.findall(text))
    return frozenset(found)

"""What users say of themselves is read as facts, in English and in Chinese; nothing else is.

Facts are written as ``attribute=value``; with "-" before them if they are denied or disliked, with
"~" if they are over, and with "sister." if they are about a sister.
"""

from __future__ import annotations

import gzip
import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryspace.service.deriving.language import is_chinese, sentences, stated_part
from memoryspace.service.deriving.personal.extraction import facts_in
from memoryspace.service.deriving.personal.facts import Fact
from memoryspace.service.values.memory import MemoryItem

NOW = datetime(2024, 5, 15, 12, tzinfo=UTC).timestamp()  # a Wednesday

ENGLISH = {
    "My name is Ada Palmer.": "name=Ada Palmer",
    "Hi, I'm Luis, nice to meet you!": "name=Luis",
    "Hello! I am Priya.": "name=Priya",
    "You can call me Bo.": "nickname=Bo",
    "I am 34 years old.": "age=34",
    "I just turned 41 last week.": "age=41",
    "My birthday is on March 3rd.": "birthday=March 3rd",
    "I was born in 1987.": "birthday=1987",
    "I was born in Lagos.": "hometown=Lagos",
    "I'm originally from Porto.": "hometown=Porto",
    "I grew up in a small village near Graz.": "hometown=a small village near Graz",
    "I live in Utrecht with my two cats.": "home=Utrecht",
    "I've been living in Osaka for six years.": "home=Osaka",
    "We moved to Tallinn in January.": "home=Tallinn",
    "I recently moved from Leeds to Cardiff.": "home=Cardiff",
    "I live in Lyon, France.": "home=Lyon, France",
    "I live in Ghent, which is lovely.": "home=Ghent",
    "I used to live in Quito.": "~home=used to live in Quito",
    "I no longer live in Bergen.": "~home=no longer live in Bergen",
    "I work as a midwife.": "job=midwife",
    "I'm a marine biologist.": "job=marine biologist",
    "I am a nurse at a children's hospital.": "job=nurse",
    "I became a firefighter last year.": "work=became a firefighter",
    "I work at Harbour Robotics.": "employer=Harbour Robotics",
    "I started a new job at Northwind Bank on Monday.": "work=started a new job at Northwind Bank",
    "I quit my job at the post office.": "~work=quit my job at the post office",
    "I don't work for Acme anymore.": "~work=don't work for Acme anymore",
    "I'm studying law at Ghent University.": "school=studying law at Ghent University",
    "I'm majoring in linguistics.": "school=majoring in linguistics",
    "I'm married.": "marital=married",
    "I got divorced two years ago.": "~partner=got divorced",
    "I'm a strict vegan.": "diet=vegan",
    "I'm allergic to peanuts and shellfish.": "allergy=peanuts; allergy=shellfish",
    "I have a nut allergy.": "allergy=have a nut allergy",
    "I was diagnosed with asthma as a child.": "health=was diagnosed with asthma as a child",
    "I like tennis, hiking and rock climbing.": "likes=tennis; likes=hiking; likes=rock climbing",
    "I really love old jazz records.": "likes=old jazz records",
    "I'm a big fan of silent films.": "likes=silent films",
    "I'm passionate about urban gardening.": "likes=urban gardening",
    "My hobbies are chess and pottery.": "likes=chess; likes=pottery",
    "I hate cilantro.": "-likes=cilantro",
    "I can't stand loud music.": "-likes=loud music",
    "I don't like crowded trains.": "-likes=crowded trains",
    "I don't like coffee anymore.": "-likes=coffee",
    "I'm not a fan of horror movies.": "-taste=not a fan of horror movies",
    "I don't eat pork.": "-eats=pork",
    "I'm afraid of spiders.": "fears=afraid of spiders",
    "I prefer tea over coffee.": "taste=prefer tea over coffee",
    "My favourite colour is teal.": "favourite colour=teal",
    "My favorite band is The Cure.": "favourite band=The Cure",
    "I have two dogs.": "pets=two dogs",
    "I have a cat named Miso.": "pets=a cat named Miso; cat miso.family=Miso",
    "We adopted a puppy yesterday.": "pets=a puppy",
    "I have three kids.": "family=have three kids",
    "My sister lives in Rome.": "sister.home=Rome",
    "My sister Emma works as a vet.": "sister emma.job=vet",
    "My husband's name is Karl.": "husband karl.name=Karl",
    "My dog is called Biscuit.": "dog biscuit.name=Biscuit",
    "My son is allergic to eggs.": "son.allergy=eggs",
    "I own a sailing boat.": "belongings=own a sailing boat",
    "I speak Dutch and Polish.": "learning=speak Dutch and Polish",
    "I play the cello.": "learning=play the cello",
    "I'm learning Portuguese at the moment.": "learning=learning Portuguese at the moment",
    "I've been training for a marathon.": "plan=been training for a marathon",
    "I go swimming every Tuesday.": "habit=go swimming every Tuesday",
    "I don't smoke.": "-smoking=don't smoke",
    "I'm planning to visit Iceland next summer.": "plan=planning to visit Iceland next summer",
    "I want to open a bakery someday.": "plan=want to open a bakery someday",
    "I'm flying to Madrid next Friday.": "plan=flying to Madrid next Friday",
    "I bought a used piano last Saturday.": "belongings=bought a used piano",
    "Yesterday I went to the dentist.": "event=went to the dentist",
    "I won a pie-eating contest last year.": "event=won a pie-eating contest last year",
    "I'm Rosa, I live in Lima and work as a translator.": "name=Rosa; home=Lima; job=translator",
    "I live in Lima and work as a translator.": "home=Lima; job=translator",
    "I like rain but I hate snow.": "likes=rain; -likes=snow",
    "I'm vegetarian, what could I cook tonight?": "diet=vegetarian",
    "From now on, answer in French.": "instruction=From now on, answer in French",
}

NOTHING_ENGLISH = [
    "Do you like tennis?",
    "What should I wear to a wedding?",
    "If I lived in Rome, I would eat gelato every day.",
    "I wish I had a dog.",
    "I would love it if you were shorter.",
    "Suppose I am a pilot.",
    "Please summarise this article.",
    "Write me a poem about autumn.",
    "Thanks, that helps a lot!",
    "I think that is a great idea.",
    "I'm tired today.",
    "I'm feeling a bit down.",
    "I love it!",
    "I like your suggestion.",
    "I see, that makes sense.",
    "I'll try that, thank you.",
    "Paris is the capital of France.",
    "He lives in Boston.",
    'She said: "I live in Boston and I hate it."',
    'She said: "I am sad. I live in Boston."',
    "I have a question about taxes.",
    "I don't know.",
    "My day is going well.",
    "See you tomorrow!",
    "I want to ask you something.",
    "> I live in Paris",
    "```\nI live in code\n```",
    "I was wondering whether it rains.",
    "I hope you are well.",
    "I'm a bit confused by this.",
    "You live in a computer.",
]

CHINESE = {
    "我叫林小雨。": "name=林小雨",
    "我的名字是赵一鸣。": "name=赵一鸣",
    "你好，我是沈佳怡，很高兴认识你。": "name=沈佳怡",
    "你可以叫我阿宝。": "nickname=阿宝",
    "我今年28岁。": "age=28",
    "我的生日是三月五日。": "birthday=三月五日",
    "我是1990年出生的。": "birthday=是1990年出生的",
    "我来自云南。": "hometown=云南",
    "我是四川人。": "hometown=四川",
    "我的家乡是青岛。": "hometown=青岛",
    "我住在苏州。": "home=苏州",
    "我现在住在上海浦东。": "home=上海浦东",
    "我家在杭州。": "home=杭州",
    "我上个月搬到了深圳。": "home=深圳",
    "我从北京搬到成都了。": "home=成都",
    "我以前住在西安。": "~home=以前住在西安",
    "我已经不住在广州了。": "~home=已经不住在广州了",
    "我是一名护士。": "job=护士",
    "我是个软件工程师。": "job=软件工程师",
    "我的职业是律师。": "work=的职业是律师",
    "我在一家出版社工作。": "employer=一家出版社",
    "我在银行上班。": "employer=银行",
    "我以前在邮局工作。": "~work=以前在邮局工作",
    "我不再在那家餐厅工作了。": "~work=不再在那家餐厅工作了",
    "我在南京大学读书。": "school=在南京大学读书",
    "我的专业是考古学。": "school=的专业是考古学",
    "我结婚了。": "partner=结婚了",
    "我还是单身。": "partner=还是单身",
    "我是素食主义者。": "diet=素食主义者",
    "我对花生过敏。": "allergy=花生",
    "我对海鲜和芒果过敏。": "allergy=海鲜; allergy=芒果",
    "我有高血压。": "health=有高血压",
    "我喜欢钓鱼。": "likes=钓鱼",
    "我很喜欢画画、书法和围棋。": "likes=画画; likes=书法; likes=围棋",
    "我平时喜欢打羽毛球，也喜欢游泳。": "likes=打羽毛球; likes=游泳",
    "我对天文学很感兴趣。": "likes=天文学",
    "我是一个足球迷。": "taste=是一个足球迷",
    "我不喜欢香菜。": "-likes=香菜",
    "我讨厌下雨天。": "-likes=下雨天",
    "我不喜欢喝咖啡了。": "-likes=喝咖啡",
    "我不吃辣。": "-eats=辣",
    "我怕蛇。": "fears=蛇",
    "我更喜欢坐火车。": "taste=更喜欢坐火车",
    "我最喜欢的颜色是绿色。": "favourite 颜色=绿色",
    "我最喜欢的作家是沈从文。": "favourite 作家=沈从文",
    "我养了一只橘猫。": "pets=一只橘猫",
    "我有两条狗。": "pets=两条狗",
    "我有一个女儿。": "family=有一个女儿",
    "我妹妹住在大连。": "妹妹.home=大连",
    "我妈妈是一名老师。": "妈妈.job=老师",
    "我老公叫周凯。": "老公.name=周凯",
    "我儿子对牛奶过敏。": "儿子.allergy=牛奶",
    "我女儿今年6岁。": "女儿.age=6",
    "我会说日语。": "learning=会说日语",
    "我正在学习法语。": "learning=正在学习法语",
    "我最近在准备考研。": "school=最近在准备考研",
    "我在找工作。": "work=在找工作",
    "我每天早上跑步。": "habit=每天早上跑步",
    "我打算明年去冰岛旅行。": "plan=打算明年去冰岛旅行",
    "我想学一门乐器。": "learning=想学一门乐器",
    "我下周要去重庆出差。": "plan=下周要去重庆出差",
    "我昨天买了一台新相机。": "belongings=昨天买了一台新相机",
    "上周末我参加了一场婚礼。": "event=参加了一场婚礼",
    "去年我毕业了。": "school=毕业了",
    "上周我和朋友一起去了黄山。": "event=和朋友一起去了黄山",
    "我喜歡攝影。": "likes=攝影",
    "我是素食主义者，晚上可以做什么菜？": "diet=素食主义者",
    "以后请用英文回答。": "instruction=以后请用英文回答",
}

NOTHING_CHINESE = [
    "你喜欢打球吗？",
    "我应该怎么办？",
    "如果我住在海边，我会每天游泳。",
    "要是我有一只猫就好了。",
    "请帮我写一首诗。",
    "谢谢你的建议。",
    "我觉得你说得对。",
    "我今天有点累。",
    "我知道了。",
    "好的，我会试试的。",
    "北京是中国的首都。",
    "他住在天津。",
    "他说：“我住在天津，我喜欢那里。”",
    "他说：“我很难过。我住在天津。”",
    "我想问你一个问题。",
    "我喜欢你。",
    "我不知道该怎么选。",
    "明天见！",
    "我很高兴认识你。",
    "今天天气真好。",
    "我有一个问题。",
    "我还没有去过海南。",
    "希望你一切都好。",
    "你能推荐一本书吗？",
]


def memory(text: str, **fields: object) -> MemoryItem:
    plain = {"id": "m1", "user_id": "u", "session_id": "s", "role": "user", "created_at": NOW}
    return MemoryItem(**{**plain, "updated_at": NOW, "value": text, "text": text, **fields})  # type: ignore[arg-type]


def written(fact: Fact) -> str:
    sign = "~" if fact.ended else "-" if fact.polarity < 0 else ""
    _, _, relation = fact.subject.partition("/")
    return f"{sign}{relation}{'.' if relation else ''}{fact.attribute}={fact.value}"


def read(text: str, **fields: object) -> str:
    return "; ".join(map(written, facts_in(memory(text, **fields))))


@pytest.mark.parametrize(("text", "facts"), [*ENGLISH.items(), *CHINESE.items()])
def test_what_somebody_says_of_themselves_is_a_fact(text: str, facts: str) -> None:
    assert read(text) == facts


@pytest.mark.parametrize("text", [*NOTHING_ENGLISH, *NOTHING_CHINESE])
def test_what_says_nothing_lasting_is_none(text: str) -> None:
    assert read(text) == ""


# Texts and times


def facts(text: str, **fields: object) -> list[Fact]:
    return list(facts_in(memory(text, **fields)))


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("I live in Utrecht with my two cats.", "The user lives in Utrecht with their two cats."),
        ("I'm a nurse.", "The user is a nurse."),
        ("I've got a dog.", "The user has got a dog."),
        ("I study law at Ghent University.", "The user studies law at Ghent University."),
        ("I really love it here and I love chess.", "The user loves chess."),
        ("My sister lives in Rome.", "The user's sister lives in Rome."),
        ("I don't like fish.", "The user doesn't like fish."),
        ("I like chess and poker.", "The user likes chess."),
        ("We adopted a puppy.", "The user: We adopted a puppy."),
        ("我住在苏州。", "用户住在苏州。"),
        ("我妹妹住在大连。", "用户的妹妹住在大连。"),
        ("我很喜欢画画、书法和围棋。", "用户很喜欢画画。"),
        ("我们养了一只猫。", "用户：我们养了一只猫。"),
    ],
)
def test_a_fact_reads_alone(said: str, text: str) -> None:
    assert facts(said)[0].text == text


def test_the_user_is_one_person_whatever_name_a_message_carries() -> None:
    (ann,) = facts("I live in Paris.", name="Ann")
    assert (ann.text, ann.subject) == ("The user lives in Paris.", "user")
    (bo,) = facts("我住在苏州。", name="小波")
    assert (bo.text, bo.subject) == ("用户住在苏州。", "user")


def test_who_speaks_without_a_role_is_told_by_a_name() -> None:
    (ann,) = facts("I live in Paris.", name="Ann", role=None)
    assert (ann.text, ann.subject) == ("Ann lives in Paris.", "ann")
    for nobody in ("user", "User", "", None):
        assert facts("I live in Paris.", name=nobody)[0].subject == "user"


@pytest.mark.parametrize(
    ("said", "first", "last", "text"),
    [
        ("I bought a boat yesterday.", "2024-05-14", "2024-05-14", "yesterday (2024-05-14)."),
        ("Last week I sold my car.", "2024-05-06", "2024-05-12", "(2024-05-06 to 2024-05-12)."),
        ("I visited Rome in March 2021.", "2021-03-01", "2021-03-31", "in March 2021."),
        ("我昨天买了一台相机。", "2024-05-14", "2024-05-14", "（2024-05-14）。"),
    ],
)
def test_an_event_has_the_days_it_speaks_of(said: str, first: str, last: str, text: str) -> None:
    (fact,) = facts(said)
    assert fact.event is not None
    begin, end = (datetime.fromtimestamp(each, UTC) for each in fact.event)
    assert begin.date().isoformat() == first
    assert datetime.fromtimestamp(end.timestamp() - 1, UTC).date().isoformat() == last
    assert fact.text.endswith(text)
    assert fact.said_at == NOW


def test_a_change_holds_from_when_it_happened_a_state_from_when_it_was_said() -> None:
    (moved,) = facts("I moved to Oslo on 2 May 2024.")
    assert moved.since == datetime(2024, 5, 2, tzinfo=UTC).timestamp()
    assert moved.value == "Oslo"
    for said in ("I live in Oslo.", "I live in Oslo, as you heard yesterday."):
        (lives,) = facts(said)
        assert (lives.value, lives.since) == ("Oslo", NOW)


def test_what_comes_is_a_plan_only_with_its_time() -> None:
    assert read("I'm flying to Madrid.") == ""
    assert read("I'm flying to Madrid next Friday.").startswith("plan=")


def test_only_a_users_words_are_read() -> None:
    for role in ("assistant", "system", "tool"):
        assert facts("I live in Paris.", role=role) == []
    assert facts("I live in Paris.", role=None) != []


def test_facts_know_where_they_come_from() -> None:
    (fact,) = facts("I live in Paris.", id="m7", marks=frozenset({"quarantined"}))
    assert fact.sources == ("m7",)
    assert fact.quarantined
    assert facts("I like tea.")[0].type == "preference"
    assert facts("I like tea.")[0].is_exclusive is False
    assert fact.is_exclusive


# Sentences


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("I met Dr. Li. She is kind.", ["I met Dr. Li.", "She is kind."]),
        ("It is 3.14! Really? Yes", ["It is 3.14!", "Really?", "Yes"]),
        ("At 5 p.m. I left. Bye.", ["At 5 p.m. I left.", "Bye."]),
        ("你好。我叫小明！你呢？", ["你好。", "我叫小明！", "你呢？"]),
        ("one\ntwo", ["one", "two"]),
        ("a `code` b", ["a b"]),
        ("x " * 400, []),
        ("", []),
    ],
)
def test_texts_fall_into_sentences(text: str, parts: list[str]) -> None:
    assert list(sentences(text)) == parts


def test_a_question_leaves_what_was_stated_before_it() -> None:
    assert stated_part("I don't eat meat, what can I cook?") == "I don't eat meat"
    assert stated_part("我不吃肉，可以做什么？") == "我不吃肉"
    assert stated_part("What can I cook?") == ""
    assert stated_part("I cook.") == "I cook."


def test_a_language_is_told_by_most_of_its_words() -> None:
    assert is_chinese("我在 Google 工作")
    assert not is_chinese("I live in 北京 these days")


@given(st.text(max_size=200) | st.text("我你IiMmys'是在有了，。?! \n\"“”abc你好喜欢", max_size=80))
def test_no_text_makes_reading_raise(text: str) -> None:
    for fact in facts(text):
        assert fact.text
        assert fact.value


# Each is repeated to the length of the longest sentence that is read: with a pattern that tries
# all ways to divide it, reading would not end.
REPEATED = [
    "I ", "my ", "I like a, ", "I like tea and ", "really ", "hi, ", "so well, ", "last week ",
    "((", "a b, ", "I used to ", "I have two nice ", "I'm a ", "I went to ", "my sister ", "aw",
    "I never ", "我", "我喜欢", "我喜欢茶和", "和，", "嗯", "今天", "最近，", "上周末", "对了",
    "我在", "我对", "我今天最近",
]  # fmt: skip


@pytest.mark.parametrize("piece", REPEATED)
def test_no_sentence_takes_long_to_read(piece: str) -> None:
    for end in ("", "I", "我", "x."):
        assert all(facts((piece * 390)[:390] + end))


def test_the_rules_find_facts_in_real_conversations() -> None:
    folder = os.environ.get("MEMORYSPACE_DATA")
    if folder is None:
        pytest.skip("MEMORYSPACE_DATA names no folder with real conversations")
    shares: dict[str, list[bool]] = {"en": [], "zh": []}
    with gzip.open(Path(folder) / "memorybank_zh_en.jsonl.gz", "rt", encoding="utf-8") as lines:
        for user in map(json.loads, lines):
            said = [turn["user"] for day in user["days"] for turn in day["turns"]]
            shares[user["lang"]] += [bool(facts(text)) for text in said]
    for found in shares.values():
        assert 0.25 < sum(found) / len(found) < 0.5

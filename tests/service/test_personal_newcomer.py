"""What a newcomer tries first: say a few things, then ask about them, as the user or an agent."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

import pytest

from memoryspace.retrieval import Entry
from memoryspace.retrieval.personal.facts import Facts
from memoryspace.service import PersonalMemoryService, ServiceSettings


class Talk(NamedTuple):
    """What a user says, one message a session, and questions with what the first hit contains."""

    said: tuple[str, ...]
    questions: tuple[tuple[str, str], ...]


TALKS = {
    "a move": Talk(
        ("I live in Rome.", "I moved to Oslo last week."),
        (
            ("Where do I live?", "Oslo"),
            ("Where does she live?", "Oslo"),
            ("Where is the user based?", "Oslo"),
            ("Where did I live before?", "Rome"),
        ),
    ),
    "tastes": Talk(
        ("I'm vegetarian.", "My favourite colour is green.", "I went to the cinema yesterday."),
        (
            ("Do I eat meat?", "vegetarian"),
            ("Does he eat meat?", "vegetarian"),
            ("Can I serve her steak?", "vegetarian"),
            ("What should I cook for her?", "vegetarian"),
            ("What colour should I paint his door?", "green"),
        ),
    ),
    "a person": Talk(
        (
            "Hi, my name is Sarah Miller.",
            "I was born on 12 May 1990.",
            "I work as a nurse at St Mary's hospital.",
            "I'm allergic to penicillin.",
            "My husband Tom is a teacher.",
            "We have two kids, Leo and Mia.",
            "Our dog is called Rex.",
        ),
        (
            ("What is my name?", "Sarah"),
            ("When is my birthday?", "12 May"),
            ("How old am I?", "1990"),
            ("What do I do for a living?", "nurse"),
            ("What is her job?", "nurse"),
            ("What am I allergic to?", "penicillin"),
            ("Which medicine must I avoid?", "penicillin"),
            ("What is my husband's name?", "Tom"),
            ("What does Tom do?", "teacher"),
            ("Do I have children?", "kids"),
            ("Who is Leo?", "kids"),
            ("What's my dog's name?", "Rex"),
            ("Do I have any pets?", "Rex"),
        ),
    ),
    "changes": Talk(
        (
            "I work at Google.",
            "I drive a Fiat.",
            "I got married to Lisa in 2019.",
            "I quit my job at Google and joined Spotify.",
            "I sold the Fiat and bought a Tesla.",
            "Lisa and I got divorced last month.",
        ),
        (
            ("Where do I work?", "Spotify"),
            ("Who is my employer?", "Spotify"),
            ("Do I still work at Google?", "quit"),
            ("What car do I drive?", "Tesla"),
            ("Am I married?", "divorced"),
            ("Am I single?", "divorced"),
        ),
    ),
    "corrections": Talk(
        (
            "I love coffee.",
            "I play the guitar.",
            "I don't drink coffee any more.",
            "Actually I play the bass, not the guitar.",
            "I have an exam on Monday.",
            "The exam was moved to Wednesday.",
            "My boss is called Karen.",
            "My new boss is Steve.",
        ),
        (
            ("Do I drink coffee?", "don't drink"),
            ("What can I offer them to drink?", "don't drink"),
            ("What instrument do I play?", "bass"),
            ("When is my exam?", "Wednesday"),
            ("Who is my boss?", "Steve"),
        ),
    ),
    "plans": Talk(
        (
            "Next month I'm flying to Japan.",
            "I want to run a marathon in October.",
            "I have a dentist appointment on Friday at 3pm.",
            "I hate mushrooms.",
        ),
        (
            ("Where am I travelling?", "Japan"),
            ("When is my dentist appointment?", "Friday"),
            ("What am I training for?", "marathon"),
            ("What food don't I like?", "mushrooms"),
            ("Should I put mushrooms on his pizza?", "mushrooms"),
        ),
    ),
    "names": Talk(
        (
            "Everyone calls me Bob.",
            "My real name is Robert Smith.",
            "My sister Anna lives in Paris.",
            "I live in Berlin.",
        ),
        (
            ("What do people call me?", "Bob"),
            ("What's my full name?", "Robert"),
            ("Where does my sister live?", "Paris"),
            ("Where does Anna live?", "Paris"),
            ("Where do I live?", "Berlin"),
        ),
    ),
    "pets": Talk(
        ("My cat is called Luna.", "Luna died in March.", "We adopted a puppy called Max."),
        (("What pets do I have?", "Max"), ("What is my cat's name?", "Luna")),
    ),
    "a family": Talk(
        (
            "I'm Dan, 41, from Leeds.",
            "I have a daughter, Ruby, she's 7.",
            "I'm scared of spiders.",
            "My mum is in hospital.",
            "I speak German and a bit of Dutch.",
        ),
        (
            ("What do you know about me?", "Dan"),
            ("How old am I?", "41"),
            ("How old is my daughter?", "7"),
            ("What am I afraid of?", "spiders"),
            ("What languages do I speak?", "German"),
            ("What languages does he speak?", "German"),
            ("Where am I from?", "Leeds"),
            ("How is my mum?", "hospital"),
        ),
    ),
    "health": Talk(
        (
            "I'm gluten intolerant.",
            "I have type 2 diabetes.",
            "I used to smoke but I quit in 2020.",
            "I take metformin every morning.",
            "I live with my flatmate Joe, who is vegan.",
        ),
        (
            ("Can she eat bread?", "gluten"),
            ("Do I smoke?", "quit"),
            ("What medication do I take?", "metformin"),
            ("What does Joe eat?", "vegan"),
            ("Is my flatmate vegan?", "vegan"),
        ),
    ),
    "自我介绍": Talk(
        (
            "我叫李雷，今年28岁。",
            "我在北京工作，是程序员。",
            "我对花生过敏。",
            "我女朋友叫韩梅梅。",
            "我养了一只猫叫咪咪。",
        ),
        (
            ("我叫什么名字？", "李雷"),
            ("我是谁？", "李雷"),
            ("我多大了？", "28"),
            ("我的职业是什么？", "程序员"),
            ("他做什么工作？", "程序员"),
            ("我在哪里工作？", "北京"),
            ("我不能吃什么？", "花生"),
            ("他对什么过敏？", "花生"),
            ("我女朋友叫什么？", "韩梅梅"),
            ("我的猫叫什么？", "咪咪"),
            ("我有宠物吗？", "猫"),
        ),
    ),
    "变化": Talk(
        (
            "我住在上海。",
            "我开大众。",
            "我喜欢喝咖啡。",
            "上个月我搬到杭州了。",
            "我把大众卖了，买了特斯拉。",
            "我不喝咖啡了。",
        ),
        (
            ("我住在哪里？", "杭州"),
            ("她住在哪儿？", "杭州"),
            ("我以前住在哪里？", "上海"),
            ("我开什么车？", "特斯拉"),
            ("我还喝咖啡吗？", "不喝咖啡"),
            ("我能请他喝咖啡吗？", "不喝咖啡"),
        ),
    ),
    "家里": Talk(
        (
            "我爱人是医生。",
            "我们去年离婚了。",
            "我儿子今年上小学。",
            "我下周去日本出差。",
            "我不吃香菜。",
            "我生日是五月三号。",
        ),
        (
            ("我结婚了吗？", "离婚"),
            ("我有孩子吗？", "儿子"),
            ("我下周去哪儿？", "日本"),
            ("做菜要注意什么？", "香菜"),
            ("我生日是哪天？", "五月"),
        ),
    ),
}


async def hits(said: tuple[str, ...], questions: list[str], embedder: Any) -> list[list[Any]]:
    async with PersonalMemoryService(settings=ServiceSettings(embedder=embedder)) as service:
        for number, text in enumerate(said):
            await service.add_memory("ann", [text], session_id=f"s{number}")
        return [await service.search("ann", question) for question in questions]


@pytest.mark.parametrize("embedder", [None, "best"])
@pytest.mark.parametrize("talk", TALKS.values(), ids=TALKS)
def test_the_first_hit_answers(talk: Talk, embedder: Any) -> None:
    found = asyncio.run(hits(talk.said, [text for text, _ in talk.questions], embedder))
    first = {
        text: some[0].memory.text for (text, _), some in zip(talk.questions, found, strict=True)
    }
    wrong = {text: first[text] for text, answer in talk.questions if answer not in first[text]}
    assert not wrong


@pytest.mark.parametrize("embedder", [None, "best"])
@pytest.mark.parametrize(
    "question", ["What is my blood type?", "What is my shoe size?", "What car do I drive?"]
)
def test_what_was_never_said_finds_nothing_relevant(question: str, embedder: Any) -> None:
    (found,) = asyncio.run(hits(TALKS["a person"].said, [question], embedder))
    assert all(hit.score < 0.3 for hit in found)


@pytest.mark.parametrize("embedder", [None, "best"])
def test_a_flatmates_diet_is_not_the_users(embedder: Any) -> None:
    mine, his = asyncio.run(
        hits(TALKS["health"].said, ["Am I vegan?", "Is my flatmate vegan?"], embedder)
    )
    assert mine[0].score < his[0].score


def test_own_names_mean_the_user() -> None:
    found = asyncio.run(
        hits(TALKS["names"].said, ["Where does Bob live?", "What is my nickname?"], None)
    )
    assert [some[0].memory.text for some in found] == [
        "I live in Berlin.",
        "Everyone calls me Bob.",
    ]


def test_own_names_are_known_again_after_a_restart() -> None:
    entry = Entry("f", "The user's name is Robert.", title="name (called)", subject="user",
                  kind="fact", record="f", sources=("m",))  # fmt: skip
    facts, again = Facts(), Facts()
    facts.add(0, entry)
    again.restore(facts.export(1)[0], {0: entry})
    assert again.own_names() == facts.own_names() == {"robert"}


@pytest.mark.parametrize(
    ("said", "facts"),
    [
        ("I was born on 12 May 1990.", {("user", "birthday", "12 May 1990")}),
        ("Everyone calls me Bob.", {("user", "nickname", "Bob")}),
        ("I'm Dan, 41, from Leeds.", {("user", "name", "Dan"), ("user", "age", "41")}),
        ("I have a daughter, Ruby, she's 7.", {("user/daughter ruby", "age", "7")}),
        (
            "We have three children, Tom, Ann and Sue.",
            {(f"user/child {name.lower()}", "family", name) for name in ("Tom", "Ann", "Sue")},
        ),
    ],
)
def test_first_facts_are_about_the_right_person(said: str, facts: set[Any]) -> None:
    async def derived() -> set[Any]:
        async with PersonalMemoryService(settings=ServiceSettings(embedder=None)) as service:
            await service.add_memory("ann", [said])
            page = await service.page("ann", filters={"kind": "fact"})
            details = [each.details for each in page.memories]
            return {(each["subject"], each["attribute"], each["value"]) for each in details}

    assert facts <= asyncio.run(derived())

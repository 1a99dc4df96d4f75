"""What holds now, and whose it is: as people type it, in English and in Chinese.

Each story is what somebody says on one day after the other; what they are believed to be in the
end stands beside it, and what nobody may believe any more, or of them.
"""

from __future__ import annotations

import pytest

from test_personal import Life, lives

HOLDS = {  # what is said, day by day; words that must be known in the end; words that must not
    # people leave out the subject, the apostrophe and the capital
    "a job told in passing": (["im ola, 29, i do the books for a brewery"], ["29", "brewery"], []),
    "a promotion": (
        ["i work as a waiter at Lindo", "they made me floor manager"],
        ["manager"],
        ["waiter"],
    ),
    "being let go": (["i work as a florist", "got laid off yesterday"], ["laid off"], ["florist"]),
    "a move": (["we live in Ghent", "moved to Bruges last week"], ["bruges"], ["ghent"]),
    "quitting": (["i smoke a pack a day", "quit smoking on sunday"], ["quit smoking"], ["pack"]),
    "beginning again": (["i quit smoking", "im smoking again"], ["again"], ["quit"]),
    "a death": (["ive got a beagle named Otis", "Otis died on friday"], ["died"], ["beagle"]),
    "a class that ended": (
        ["i joined a pottery class, mondays at six", "the pottery thing got cancelled"],
        ["cancelled"],
        ["joined"],
    ),
    "another medicine": (
        ["i take ramipril every morning", "they changed the ramipril to losartan"],
        ["losartan"],
        ["every morning"],
    ),
    "another dose": (["im on sertraline, 25mg", "dose went up, 75 mg now"], ["75"], ["25mg"]),
    "a correction": (
        ["my exam is on 3 June", "correction, i mixed it up, the exam is on 13 June"],
        ["13 june"],
        ["on 3 june"],
    ),
    "another name": (
        ["my name is Robin", "i changed my name! its Sasha now"],
        ["sasha"],
        ["robin"],
    ),
    "another day": (
        ["i go to choir on Mondays every week", "choir is on Thursdays every week now"],
        ["thursdays"],
        ["mondays"],
    ),
    "a wish about answers": (["keep your answers short please, no emojis"], ["emojis"], []),
    "升职": (["我在邮局当分拣员", "我升做主管了"], ["主管"], ["分拣员"]),
    "辞职": (["我在银行上班", "我辞职了，现在全职在家"], ["辞职"], ["银行上班"]),
    "搬家": (["我住在洛阳", "我搬到郑州了"], ["郑州"], ["洛阳"]),
    "改时间": (["我每周二晚上打乒乓球", "乒乓球停了，改瑜伽，每周五"], ["瑜伽"], ["周二"]),
    "戒酒": (["我天天喝啤酒", "这回真戒酒了"], ["戒酒"], ["天天"]),
    "换药": (["我每天吃一片美托洛尔", "医生给我换药了，换成比索洛尔"], ["比索洛尔"], ["美托洛尔"]),
    "走丢": (["我养了两只鹦鹉，叫豆豆和米粒", "豆豆飞走了，只剩米粒了"], ["米粒"], ["两只"]),
    "取消": (["我打算国庆去敦煌", "敦煌没去成，票退了"], ["没去成"], ["打算"]),
    "更正": (["公司在无锡", "更正一下，公司其实在江阴"], ["江阴"], ["无锡"]),
    "改称呼": (["以后跟我说话简短点，别用表情"], ["简短"], []),
}  # fmt: skip


@pytest.mark.parametrize("story", HOLDS)
def test_what_was_said_last_on_a_matter_holds(story: str) -> None:
    said, known, gone = HOLDS[story]

    async def scene(life: Life) -> None:
        for text in said:
            await life.says(text, days=1)
        now = " ".join(await life.texts()).lower()
        assert [word for word in known if word not in now] == []
        assert [word for word in gone if word in now] == []

    lives(scene)


@pytest.mark.parametrize(
    "said",
    [
        ("I live in Oslo.", "I live in a small flat with my cat."),
        ("I work as a nurse.", "work was exhausting today"),
        ("I work as a nurse.", "ive started swimming before work, tuesdays"),
        ("I live in Oslo.", "I'm thinking about moving to Bergen someday."),
        ("I work as a nurse.", "I was not laid off, others were."),
        ("我是护士。", "今天上班累死了。"),
        ("我住在洛阳。", "我考虑搬到郑州。"),
    ],
)
def test_what_stands_beside_or_is_only_meant_retires_nothing(said: tuple[str, str]) -> None:
    async def scene(life: Life) -> None:
        for text in said:
            await life.says(text, days=1)
        ever = await life.all(superseded=True)
        assert [each.text for each in ever if "superseded_by" in each.details] == []

    lives(scene)


@pytest.mark.parametrize(
    ("said", "never"),
    [
        ("if i won the lottery i'd buy a castle in Spain and live there", "castle"),
        ("imagine i move to Mars next week", "mars"),
        ("i'm moving to the moon tomorrow. jk", "moon"),
        ('my colleague goes "i am moving to Peru and i quit my job"', "peru"),
        ("someone said you should live in Peru", "peru"),
        ("He has moved to Peru.", "peru"),
        ("should i move to Peru", "peru"),
        ("要是我有钱，我就去大理开客栈", "客栈"),
        ("婆婆老说“我们那时候都住窑洞”，我天", "窑洞"),
        ("他搬到三亚了。", "三亚"),
        ("有人说要搬去三亚住", "三亚"),
        ("我要不要搬到三亚？", "三亚"),
    ],
)
def test_the_imagined_the_quoted_and_the_unknown_become_nobodys_fact(said: str, never: str) -> None:
    async def scene(life: Life) -> None:
        await life.says(said)
        assert [text for text in await life.texts() if never in text.lower()] == []

    lives(scene)


@pytest.mark.parametrize(
    ("said", "word", "whose"),
    [
        ("my sister Ines lives in Faro, she's a diver", "diver", "ines"),
        ("my mate Joe would eat anything. he's allergic to nuts though", "nuts", "joe"),
        ("my flatmate Ana says she's moving to Chile", "chile", "ana"),
        ("我弟周强在重庆卖二手车，他对花生过敏", "花生", "周强"),
        ("室友小范特别爱吃榴莲", "榴莲", "小范"),
        ("儿子在德国，搞汽车的", "汽车", "儿子"),
    ],
)
def test_what_is_so_of_others_is_told_under_their_name(said: str, word: str, whose: str) -> None:
    async def scene(life: Life) -> None:
        await life.says(said)
        about = [each for each in await life.all() if word in each.text.lower()]
        assert len(about) > 0
        assert all(whose in each.text.lower() for each in about)
        assert all(each.details["subject"] != "user" for each in about)

    lives(scene)


def test_a_person_once_named_is_known_by_the_name_alone() -> None:
    async def scene(life: Life) -> None:
        await life.says("my brother Emil works as a baker")
        await life.says("Emil moved to Turin", days=1)
        subjects = {each.details["subject"] for each in await life.all()}
        assert subjects == {"user/brother emil"}

    lives(scene)


def test_one_ending_retires_several_and_names_its_message() -> None:
    async def scene(life: Life) -> None:
        await life.says("I work as a clerk.", "I work at Hansa Bank.")
        await life.says("i got fired", days=5)
        (now,) = await life.all()
        ever = await life.all(superseded=True)
        last = (await life.all("memory"))[-1]
        assert now.text == "The user got fired."
        assert now.origin is not None
        assert now.origin.derived_from == (last.id,)
        over = [each for each in ever if each.id != now.id]
        assert [each.details["superseded_by"] for each in over] == [now.id, now.id]

    lives(scene)

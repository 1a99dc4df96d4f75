"""Patterns for cues in texts and questions, in English and Chinese.

In a text: that something ended, changed, began, was wrong, or is only supposed. In a question:
whether it is about now or then, whose words it wants, and which kind of answer.
"""

from __future__ import annotations

import re

ENDS, CHANGES, CORRECTS, BEGINS, NOW, AGAIN = (1 << at for at in range(6))
ANY_CHANGE = ENDS | CHANGES | CORRECTS | BEGINS | NOW | AGAIN

_SIGNS = {
    ENDS: re.compile(
        r"\b(?:quit\w*|left|laid off|let go|fired|sacked|resign\w*|handed in|gave up|given up|giving "
        r"up|stopp(?:ed|ing)|no longer|no more|any ?more|cancel\w*|called off|is off|fell through|died|"
        r"passed|gone|lost|sold|broke up|split|separat\w+|divorc\w+|over|ended|dropped|done with|dumped|"
        r"closed|shut down|ran out|outgrown|retired|finished with|refused)\b|"
        "辞|停了|停掉|戒|分手|分了|离了|离婚|取消|去世|走了|飞走|丢了|没了|不再|不用|没去|消了|散了|黄了|泡汤|倒闭|关了|卖了|"
        "(?:不|唔)[^，。！,!\\s]{1,8}[了啦]|被裁",
        re.IGNORECASE,
    ),
    CHANGES: re.compile(
        r"\b(?:chang(?:e|ed|es|ing)|switch\w*|swap\w*|instead|replac\w+|moved|moving|relocat\w+|pushed|"
        r"postpon\w+|brought forward|went (?:up|down)|raised|upped|bumped|cut (?:me|it|to)|renam\w+|"
        r"legally|put me on|back (?:to|on|at|in)|promot\w+|made me|rescheduled|only)\b|"
        "换|改|调(?:去|到|回|岗|成|门诊)|转(?:去|行|岗|到|做|正|走)|搬|提前|提早|推迟|延期|涨到|升|变成",
        re.IGNORECASE,
    ),
    CORRECTS: re.compile(
        r"\b(?:correction|actually|mixed (?:it|them|that|this) up|turns out|i meant|got (?:it|that) wrong|"
        r"scrap that|my mistake|wrong about|misremembered)\b|更正|其实|说错|搞错|记错|弄错|打错|应该是|纠正",
        re.IGNORECASE,
    ),
    BEGINS: re.compile(
        r"\b(?:new|start(?:ed|ing)?|began|begin|joined|hired|bought|adopted|got|finally|engaged|married|"
        r"accepted|signed|landed)\b|新|开始|入职|签了|买了|终于|考上|录取|领证|结婚|在一起|请了|收了|当上|答应",
        re.IGNORECASE,
    ),
    NOW: re.compile(
        r"\b(?:now|henceforth|from now on|these days)\b|现在|如今|目前|而家", re.IGNORECASE
    ),
    AGAIN: re.compile(r"\b(?:again|another)\b|又|再次|重新", re.IGNORECASE),
}
# In Chinese a 了 at the end of a clause says that something has changed.
_BECAME = re.compile(r"[了啦咯](?:[！!~～哈啊呢吧。，,\s]|$)")

_SUPPOSES = re.compile(
    r"\bif i (?:were|was|ever|had|won|win)\b|\bimagine\b|\bsuppose\b|\bi wish\b|\blet'?s say\b|"
    r"\bwhat if\b|\bin my dreams?\b|要是|如果|假如|假设|做梦|哪天中",
    re.IGNORECASE,
)

# -- questions ---------------------------------------------------------------------------------------

OF_ASSISTANT = re.compile(
    r"\b(?:did|have|had|were) you\b|\byou(?:['’]ve| have| had)? (?:\w+ )?(?:recommend\w*|suggest\w*|said|"
    r"say|told|tell|gave|give|given|provided|mention\w*|helped|list\w*|explain\w*|advis\w*|propos\w*|"
    r"call\w*|warn\w*|schedul\w*|fix\w*|c[ao]me up|name[ds]?|pick\w*|wr[oi]te|taught|teach)\b|"
    r"\byour (?:advice|suggest\w+|recommend\w+|answer|idea|tip)|"
    "[你您](?:当时|之前|上次|曾经?|刚才|那时|以前|给我?|帮我)?(?:说|建议|推荐|提到|告诉|教|解释|列|让我|叫我|提醒)|"
    "[你您]的(?:建议|回答|解释)",
    re.IGNORECASE,
)
TO_ASSISTANT = re.compile(
    r"\b(?:should|must|shouldn'?t|mustn'?t) you\b|\b(?:want|like|need|asked?|told|tell) you to\b|"
    r"\bwant you\b|\byou should\b|\byour? repl\w+|你该|你(?:应该|要怎么)|要求你|回答我|跟我说话|称呼我",
    re.IGNORECASE,
)
OF_USER = re.compile(
    r"\b(?:i|im|i['’]m|ive|i['’]ve|id|i['’]d|my|me|mine|myself|we|our|us|the user)\b|"
    "我|咱|俺|本人|用户",
    re.IGNORECASE,
)
# An agent may ask about its user as "she".
SOMEBODY = re.compile(r"\b(?:he|she|they|him|her|hers|his|them|theirs?)\b|[他她]", re.IGNORECASE)
WHETHER_I = re.compile(r"^\W*(?:am|do|have|did|can|was|will) i\b|^我.*吗[？?]?$", re.IGNORECASE)
WHO_I_AM = re.compile(
    r"\bwho (?:am i|is the user)\b|我是谁|用户是谁|\bknow about (?:me|the user|him|her|them)\b|\babout (?:myself|my life)\b|"
    "(?:了解|知道)(?:关于)?(?:我|用户)(?:的?(?:什么|哪些|多少)|$)|介绍一?下我",
    re.IGNORECASE,
)
# "My blood type": the word before it says what is measured, and is no mere word for its matter.
MEASURED = re.compile(
    r"\b([a-z]+) (?:types?|sizes?|numbers?|groups?|levels?|rates?|counts?|scores?|signs?)\b",
    re.IGNORECASE,
)
THEN = re.compile(
    r"\b(?:was|were|did|used to|before|back (?:in|then)|previously|former(?:ly)?|had|originally|"
    r"supposed to|ago|last (?:year|month|week|spring|summer|autumn|fall|winter))\b|"
    "以前|之前|原来|当时|那时|曾经|的时候|上次|退休前|年初|去年",
    re.IGNORECASE,
)
FORMER = re.compile(
    r"\b(?:old|former(?:ly)?|previous(?:ly)?|used to|before|originally)\b|以前|之前|原来|原先|曾经|过去",
    re.IGNORECASE,
)
AT_PRESENT = re.compile(
    r"\b(?:now|still|these days|at the moment|currently|right now|nowadays|today|presently|any ?more|"
    r"latest)\b|现在|还(?!是)|目前|如今|最近|而家|仲",
    re.IGNORECASE,
)
WHERE = re.compile(
    r"\bwhere\b|\b(?:which|what) (?:city|town|country|place|village|part of town)\b|"
    "哪里|哪儿|在哪|哪个城市|什么地方|哪里人|从哪|边度",
    re.IGNORECASE,
)
WHEN = re.compile(
    r"\bwhen\b|\b(?:what|which) (?:date|days?|nights?|mornings?|time|year|month|hours|evening)\b|"
    r"\bhow (?:long|often)\b|什么时候|几时|哪天|几号|星期几|周几|几点|多久|哪一?[年月天日]|几月",
    re.IGNORECASE,
)
HOW_MANY = re.compile(
    r"\bhow (?:many|much|old|tall|often|big)\b|\bwhat (?:age|dose|number)\b|多少|几[个次岁本位只口号点匹]|多大|第几",
    re.IGNORECASE,
)
WHO = re.compile(
    r"\bwho(?:m|se|['’]s)?\b|\b(?:names?|called)\b|谁|叫(?:什么|啥)|名字|称呼|边个", re.IGNORECASE
)

# -- what would answer them --------------------------------------------------------------------------

PLACE = re.compile(
    r"\b(?:in|at|to|from|near|outside|around)\s+(?:the )?[A-Z][a-z]+|[在到去回来喺](?=[\u4e00-\u9fff]{2})|[省市区县镇村路街]"
)
DATE = re.compile(
    r"\b\d{1,2}(?:st|nd|rd|th)\b|\b\d{1,2}(?::\d\d)?\s?(?:am|pm)\b|\b\d{1,2}:\d\d\b|"
    r"\b(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:days?)?\b|"
    r"\b(?:jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)[a-z]*\b|\bmay\b|\b(?:twice|every|daily|weekly|monthly)\b|"
    "每[天周月年晚早]|周[一二三四五六日末]|星期|礼拜|[一二三四五六七八九十\\d]+[月号点日]|下个?月|月底|国庆|清明|暑假",
    re.IGNORECASE,
)
NUMBER = re.compile(
    r"\d|\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|once|twice|dozen|couple|both|one)\b|"
    "[一二两三四五六七八九十百千万俩]+[个次天年月岁块元只本件位口枝斤匹]",
    re.IGNORECASE,
)


TELLS_PLACE, TELLS_TIME, TELLS_NUMBER = (1 << at for at in range(3))

_TELLS = {TELLS_PLACE: PLACE, TELLS_TIME: DATE, TELLS_NUMBER: NUMBER}


def tells_in(text: str) -> int:
    """Return the kinds of answers in a text, as the bits of a number."""
    return sum(sort for sort, pattern in _TELLS.items() if pattern.search(text))


def changes_in(text: str) -> int:
    """Return the signs of change in a text, as the bits of a number."""
    found = 0
    for sign, pattern in _SIGNS.items():
        if pattern.search(text):
            found |= sign
    return found | (NOW if _BECAME.search(text) else 0)


def supposes(text: str) -> bool:
    """Return whether a text is hypothetical: "what if", "I wish"."""
    return _SUPPOSES.search(text) is not None

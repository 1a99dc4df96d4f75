"""Detection of questions for an overview: an order, a summary, a list of everything.

"In which order did I…", "summarise what I said about…", 按顺序, 总结, 列出所有: such questions want
a topic from beginning to end, not the ten most similar lines. Small pure functions of the text
detect them and extract their topic.
"""

from __future__ import annotations

import re

_SUMMARY = r"(?:summar(?:y|ies)|overview|recap|rundown|synopsis)"
_TALKS = r"(?:conversations?|chats?|sessions?|discussions?|talks?|messages?|exchanges?)"
_THROUGHOUT = (
    rf"(?:(?:throughout|across|during|over|through|in|from|based on) (?:all )?(?:of )?"
    rf"(?:our|my|these|the) (?:\w+ )?{_TALKS}|(?:over|through) time|so far|along the way|"
    r"over the (?:\w+ )?(?:days|weeks|months|years)|"
    r"from (?:the )?(?:beginning|start)(?: to (?:the )?(?:end|finish))?)"
)
_HAVE = r"(?:['’]ve| have|['’]d| had)?"
_SAID = (
    r"(?:told|tell|said|say|mentioned|mention|brought up|bring up|shared|asked|ask(?:ed)? about|"
    r"talked about|discussed|raised|wrote|written|described|noted)"
)
_GREW = r"(?:developed|evolved|progressed|changed|unfolded|advanced|grew|grown|went|gone)"

_ASKED_FOR = (  # each alone makes a question one for an overview
    r"summari[sz](?:e|ing)\b",
    r"sum (?:it |this |that |everything )?up\b",
    r"recap (?:what|how|my|our|everything|all)\b",
    r"(?:give|provide|show|write|prepare|want|like|need|get|have)\b[^.?!]{0,60}" rf"\b{_SUMMARY}\b",
    r"(?:in|by) (?:what|which|chronological|temporal) order\b",
    r"in order\b(?! (?:to|for|that)\b)",
    r"(?:the|what) (?:order|sequence) (?:in which|(?:that )?(?:i|we)\b|of (?:my|our|the|these)\b)",
    r"chronolog(?:y|ical|ically)\b",
    r"timeline of\b|(?:history|course|evolution|stages) of (?:my|our|how)\b",
    r"(?:walk|take|run) me through (?:how (?!to\b|i (?:can|could|should)\b)|everything|all|my|our|"
    r"what (?:i|we)|the (?:order|history|course|stages|whole))\b",
    r"list (?:out )?(?:all|every\w*|each)\b",
    rf"(?:everything|all)(?: (?:of )?the \w+)?(?: that| which)? (?:i|we|you){_HAVE} {_SAID}\b",
    rf"how\b[^.?!]{{1,150}}\b{_GREW}\b[^.?!]{{0,40}}\b{_THROUGHOUT}",
)
_ASKED_FOR_IN_CHINESE = (
    "总结(?!出|了|得|归纳出)|概括|概述|综述|回顾|梳理|汇总|归纳(?!出)|时间线|时间顺序|先后顺序|来龙去脉",
    "按(?:照)?(?:时间|先后|发生)?的?(?:顺序|先后)|以?什么顺序|(?:顺序|先后)是(?:什么|怎)",
    "(?:列出|列举|列一下|说出|讲出)[^。？！]{0,12}(?:所有|全部|每一|顺序)|(?:所有|全部)[^。？！]{0,20}列出",
    "我们?[^。？！]{0,12}(?:说|提|讲|聊|谈)(?:过|到过?)的(?:所有|全部)",
    "都(?:跟你|和你|对你)?(?:说|提|讲|聊|谈)(?:了|过|到过?)(?:些什么|哪些)",
    "怎么?(?:样)?(?:一步一?步|逐渐|逐步)|(?:发展|变化|演变|进展)(?:的)?(?:过程|历程|经过)",
)
_WANTED = re.compile(
    rf"\b(?:{'|'.join(_ASKED_FOR)})|^\W*(?:an? |the )?(?:\w+ )?{_SUMMARY} of\b|"
    + "|".join(_ASKED_FOR_IN_CHINESE),
    re.IGNORECASE,
)
_NEWEST_FIRST = re.compile(
    r"\b(?:newest|latest|most recent|last)(?: \w+)? first\b|\breverse (?:chronological )?order\b|"
    r"\bfrom (?:the )?(?:newest|latest|most recent|last) to\b|"
    "倒序|从新到旧|从近到远|由近及远|最新的?在前",
    re.IGNORECASE,
)
_OWN_WORDS = re.compile(
    rf"\bi{_HAVE}(?: \w+ly| ever)? {_SAID}\b|"
    "我(?:曾经?|之前|都|跟你|和你|对你|向你){0,4}(?:说|提|讲|告诉|聊|谈|问)",
    re.IGNORECASE,
)

# Phrases that frame such a question and are not part of its topic.
_FRAME = (
    r"(?:can|could|would|will) you|please|i(?:['’]d| would) like|(?:i )?(?:want|need) (?:to know)?",
    r"(?:give|tell|show|walk|take|run|provide|list|write|prepare)(?: (?:me|us))?"
    r"(?: (?:through|out))?",
    rf"(?:an? |the )?(?:\w+ )?{_SUMMARY}(?: of)?|summari[sz](?:e|ing)|sum up|timeline",
    r"(?:in |by )?(?:the |what |which |chronological ){0,3}(?:order|sequence)(?: in which| of)?",
    r"chronolog\w+|(?:history|course|evolution|stages) of|" + _THROUGHOUT,
    rf"(?:what |that |which )?(?:i|we|you){_HAVE} {_SAID}(?: (?:to )?you)?(?: about)?|{_SAID}",
    rf"(?:has|have|had) (?:\w+ly )?{_GREW}|(?:and|or) {_GREW}|evolved|progressed",
    r"(?:mention|name|list|give)? ?only \w+ (?:items?|things?|points?)",
    r"(?:different |various |several |key |main |major ){1,4}"
    r"(?:\w+ )??(?:aspects?|parts?|ways?|things?)?",
    r"(?:aspects?|items?|things?|points?|topics?|details?|steps?|stages?|parts?|ways?)(?: of)?",
    r"different|various|several|key|main|all|every|each|everything|includ(?:e|es|ed|ing)|how",
    r"regarding|concerning|about|related(?: to)?",
)
_FRAME_IN_CHINESE = (
    "请|帮我|给我|麻烦你?|能不能|可以|一下|我想知道",
    "按照?|(?:时间|先后|发生)?的?顺序|先后|时间线|来龙去脉|依次",
    "总结|概括|概述|综述|回顾|梳理|汇总|归纳|列出|列举|所有的?|全部的?|每一[个次件]",
    "我们?(?:曾经?|之前|都|跟你|和你|对你|向你){0,4}(?:说|提|讲|告诉|聊|谈|问)(?:过|到过?|了){0,2}你?的?",
    "(?:事情|内容|方面|话题|要点|情况)|关于|有关",
    "是?怎么?(?:样)?(?:一步一?步|逐渐|逐步)?(?:发展|变化|演变|进展)?(?:起来|过来)?的|(?:发展|变化|演变|进展)的?(?:过程|历程|经过)",
)
_FRAMES = re.compile(rf"\b(?:{'|'.join(_FRAME)})\b|" + "|".join(_FRAME_IN_CHINESE), re.IGNORECASE)
_SOMETHING = re.compile(r"\w\w|[^\W\da-zA-Z_]")


def wants_overview(text: str) -> bool:
    """Return whether a question asks for an order, a summary, or everything of a kind."""
    return _WANTED.search(text) is not None


def wants_newest_first(text: str) -> bool:
    """Return whether a question wants the newest first."""
    return _NEWEST_FIRST.search(text) is not None


def asks_own_words(text: str) -> bool:
    """Return whether a question is about what the user said, not about the answers."""
    return _OWN_WORDS.search(text) is not None


def topic_of(text: str) -> str:
    """Return the topic of an overview: the question without its frame, unless that is empty."""
    topic = " ".join(_FRAMES.sub(" ", text).split())
    return topic if _SOMETHING.search(topic) else text

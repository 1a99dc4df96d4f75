"""Standing instructions about the answers, such as "always answer in French", and their end.

An instruction stands until another one on the same thing is given. "Stop answering in French" ends
a known instruction; if none is known, it is an instruction itself. "You can answer in English
again" can only end one.
"""

from __future__ import annotations

import re
from enum import Enum

from .shared_words import shares_a_word

# Signs of a lasting instruction, as opposed to a single request.
_LASTS = re.compile(
    r"\b(?:always|never|from now on|in (?:the )?future|going forward|every (?:answer|reply|time)"
    r"|each time|remember|note that|keep (?:every|your|all|the|it|things|answers|replies)"
    r"|when(?:ever)? you (?:send|give|write|answer|reply|suggest)"
    r"|(?:can|could) (?:you|u) (?:talk|speak)"
    r"|(?:bullets?|points|emojis?|essays?|paragraphs),? (?:only|please|pls)"
    r"|no (?:emojis?|essays|paragraphs|fluff)|don't ever|no more|only ever"
    r"|I (?:want|prefer|like|need) (?:short|long|brief|concise|detailed|direct|plain|bullet"
    r"|answers|replies|you to)"
    r"|(?:please|pls|can you|could you|just) (?:don't|do not|use|answer|reply|stick|keep|avoid"
    r"|skip))\b"
    r"|别用|不要用|以后|今后|从现在|从今|每次|一律|永远|记住|尽量|固定",
    re.IGNORECASE,
)
_LANGUAGE = re.compile(
    r"\b(?:english|french|spanish|german|chinese|mandarin|cantonese|italian|portuguese|japanese"
    r"|korean|russian|arabic|dutch|polish|turkish|hindi)\b|[中英日法德韩俄西粤][文语]|普通话|国语"
    r"|白话",
    re.IGNORECASE,
)
_ANSWERS = re.compile(
    r"\b(?:answer(?:s|ing)?|repl(?:y|ies|ying)|respon(?:d|ding|ses?)|spelling|bullet(?:s| points)?"
    r"|emojis?|essays?|tone|spell|metric|celsius|imperial|british|american|sugar-?coat|jargon"
    r"|exclamation|small talk|call(?:ing)? me|address me|talk(?:ing)? to me|speak to me|paragraphs"
    r"|sentences?|recipes?|simple words|list first|units|formal|informal|abbreviations"
    rf"|step by step|(?:in|speak|speaking|use|using) (?={_LANGUAGE.pattern}))\b"
    r"|回答|回复|[跟和]我说话|用(?:中|英|日|法|德|粤|繁|简)[文语体]|写|称呼|叫我|推荐|感叹号"
    r"|文案|语气|简洁|简短|解释|提醒|表情|食谱|菜谱|啰嗦|废话",
    re.IGNORECASE,
)
_STOPS = re.compile(
    r"\b(?:stop|quit|enough (?:of|with)|drop|lose) (?:\w+ing|with|the|all)\b"
    r"|\b(?:don't|do not|not|needn't)\b.*\bany ?more\b|别再|不要再|不用再|不必再",
    re.IGNORECASE,
)
_ALLOWS = re.compile(
    r"\b(?:you|u) (?:can|may|could)\b.*\b(?:again|normally|as usual|now)\b"
    r"|\b(?:no need|don't (?:need|have)|needn't|never mind|forget)\b|\bback to\b"
    r"|不用.*了|可以.*(?:了|正常)|恢复|算了",
    re.IGNORECASE,
)
_SUPPOSED = re.compile(
    r"\bif (?:i|we|you) (?:were|was|had|could)\b|\bimagine\b|\bwhat if\b|如果|假如|假设|要是"
    r"|开玩笑",
    re.IGNORECASE,
)
# Words that occur in any instruction, whatever it is about.
_FRAME = re.compile(
    r"\b(?:user|asks?|always|never|please|pls|now|from|stop|answer\w*|repl\w+|respon\w+|keep|use"
    r"|using|write|writing|again|future|don't|any ?more|me|you|can|text)\b"
    r"|用户|以后|每次|今后|回答|回复|别再|不要|不用|可以|我|你|请|用|都|再|了",
    re.IGNORECASE,
)


class InstructionEffect(Enum):
    """The effect of an instruction: set it, stop it, or allow its end."""

    STANDS = "stands"
    STOPS = "stops"
    ALLOWS = "allows"


def instruction_effect(sentence: str) -> InstructionEffect | None:
    """Return the effect of a sentence on standing instructions, or ``None`` if it has none."""
    if _ANSWERS.search(sentence) is None and _LANGUAGE.search(sentence) is None:
        return None
    if _SUPPOSED.search(sentence) is not None:
        return None
    is_about = _ANSWERS.search(sentence) is not None
    if _STOPS.search(sentence) is not None and is_about:
        return InstructionEffect.STOPS
    if _ALLOWS.search(sentence) is not None:
        return InstructionEffect.ALLOWS
    return InstructionEffect.STANDS if is_about and _LASTS.search(sentence) is not None else None


def is_one_thing(one: str, other: str) -> bool:
    """Return whether two instructions are about the same: both about language, or a shared word."""
    if names_language(one) and names_language(other):
        return True
    return shares_a_word(_FRAME.sub(" ", one), _FRAME.sub(" ", other))


def names_language(wish: str) -> bool:
    """Return whether an instruction is about the language of the answers."""
    return _LANGUAGE.search(wish) is not None

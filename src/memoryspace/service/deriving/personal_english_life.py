"""The rows about how somebody lives: tastes, people and things, plans, habits, events."""

from __future__ import annotations

from .personal_english_parts import (
    AGAIN,
    ANY_VALUE,
    BE,
    BEEN,
    GOES_ON,
    HABITS,
    HAVE,
    MEANS_TO,
    NOT,
    NUMBER,
    OFTEN,
    PERFECT,
    SHORT,
    SOON,
    STOP,
    TALK,
    TO_NOTHING,
)
from .personal_english_rules import Rule, likes, rule
from .personal_english_words import ADVERBS, FAMILY, HAPPENED, PETS

_TASTES = (
    likes(
        rf"{BE}{ADVERBS}not (?:really |particularly |much of )?(?:an? )?(?:big |huge )?"
        rf"(?:into|fan of|fond of|keen on|interested in) {TO_NOTHING}{SHORT}",
        polarity=-1,
    ),
    likes(
        rf"{ADVERBS}(?:hates?|dislikes?|can't stand|cannot stand|detests?|loathes?|can't bear"
        rf"|despises?) {TO_NOTHING}(?!to (?:say|ask|admit)){SHORT}",
        polarity=-1,
    ),
    likes(rf"{NOT}(?:like|enjoy|care for|love) (?:to )?{TO_NOTHING}{SHORT}", polarity=-1),
    rule(
        rf"(?:{ADVERBS}(?:no longer|never)|{NOT})\s?(?:eat|drink)s? "
        rf"(?!much|enough|it|that|well|out){SHORT}",
        "eats",
        polarity=-1,
        is_list=True,
    ),
    rule(
        rf"(?:{BE}{ADVERBS}(?:afraid|scared|terrified|frightened) of|fears?|{HAVE}a (?:fear|phobia)"
        rf" of) {SHORT}",
        "fears",
        is_list=True,
    ),
    rule(rf"{ADVERBS}prefers? (?:to )?(?!not to){TO_NOTHING}{SHORT}", "prefers"),
    likes(
        rf"{ADVERBS}(?:likes?|loves?|enjoys?|adores?|(?:'ve|have) (?:always )?loved) (?:to )?"
        rf"{TO_NOTHING}(?!(?:him|her|is|everything|both|all of|seeing you|hear|know)\b){SHORT}",
    ),
    likes(
        rf"{BE}{ADVERBS}(?:an? )?(?:(?:big|huge|avid|great|massive|die-?hard|real|true|total)\s)*"
        r"(?:into|fond of|fan of|passionate about|keen on|interested in|obsessed with|crazy about"
        rf"|in love with|lover of|addicted to|hooked on) {TO_NOTHING}{SHORT}",
    ),
    likes(
        rf"{BE}{ADVERBS}an? (?:(?:big|huge|avid|great|massive|die-?hard)\s)+(?P<v>[\w' -]+?)"
        r" (?:fan|lover|enthusiast|buff)\b",
    ),
    likes(rf"{HAVE}(?:an? )?(?:passion|love|soft spot|weakness) (?:for|in) {SHORT}"),
)

_BELONGINGS = (
    rule(
        rf"(?:{HAVE}|{ADVERBS}{PERFECT}(?:adopted|rescued|got) )"
        rf"(?P<v>(?:{NUMBER}|this)\s(?:[\w'-]+\s){{0,3}}?{PETS}\b[^\n.!;]*?){STOP}",
        "pets",
    ),
    rule(
        rf"{HAVE}(?P<v>{NUMBER}\s(?:[\w'-]+\s){{0,3}}?{FAMILY}\b[^\n.!;]*?){STOP}",
        "family",
        is_list=True,
    ),
    rule(
        rf"{BE}(?P<v>(?:an? |the )?(?:single )?(?:mother|father|mom|dad|parent) of"
        rf" [^\n.!;]+?){STOP}",
        "family",
    ),
    rule(rf"{ADVERBS}owns? {SHORT}", "owns", is_list=True),
    rule(rf"drives? (?P<v>an? [^\n.!;]+?){STOP}", "owns"),
    rule(
        rf"(?:{ADVERBS}speaks?|can speak|{BE}{ADVERBS}fluent in) "
        rf"(?!to\b|with\b|up\b|about\b|for\b){SHORT}",
        "speaks",
        is_list=True,
    ),
    rule(
        rf"(?:{ADVERBS}plays?|can play) (?!it\b|a role|a part)(?!.*{AGAIN}){SHORT}",
        "plays",
        is_list=True,
    ),
    rule(rf"{BE}{ADVERBS}(?:good|great|skilled|terrible|bad) at {SHORT}", "skill"),
    rule(rf"{ADVERBS}collects? {SHORT}", "collects", is_list=True),
)

_TIMES = (  # plans, what goes on, habits, and what happened
    rule(rf"{MEANS_TO}\s(?:to\s|on\s|of\s)?{TALK}{ANY_VALUE}", "plan"),
    rule(rf"{ADVERBS}wants? to {TALK}{ANY_VALUE}", "plan"),
    rule(rf"(?:'d|would) love to {TALK}{ANY_VALUE}", "plan"),
    rule(rf"{BE}{ADVERBS}(?:going to|gonna) {TALK}{ANY_VALUE}", "plan"),
    rule(rf"{BE}{ADVERBS}(?P<v>{SOON}\b[^\n.!]{{6,}})", "plan:timed"),
    rule(
        rf"(?:{BE}{ADVERBS}|{BEEN}{ADVERBS}){GOES_ON}(?: for| up)? (?!some research|better|well"
        rf"|good|great|fine|okay|ok\b|professionally|a lot){SHORT}",
        "doing",
    ),
    rule(rf"{ADVERBS}(?P<v>(?:{OFTEN} )?{HABITS}\b[^\n.!]*?\b{AGAIN})(?=[.!,;]|\s|$)", "habit"),
    rule(
        rf"(?P<v>{OFTEN} (?!(?:thought|wanted|wondered|feel|felt|think|heard|knew|find|know|see|get"
        r"|be|have|seems?|try|been|say|said|ask|hold|met|got|had)\b)\w+[^\n.!]*)",
        "habit",
    ),
    rule(
        rf"{NOT}(?P<v>(?:smoke|drive|swim|drink|have (?:an? |any )?(?:kids|children|siblings|pets"
        r"|car|dog|cat|tv))\b[^\n.!]*)",
        "habit",
        polarity=-1,
    ),
    rule(rf"{ADVERBS}{PERFECT}(?P<v>{HAPPENED}\b[^\n!]*?)(?=[.!]*$)", "event:past"),
)

ROWS: tuple[Rule, ...] = (*_TASTES, *_BELONGINGS, *_TIMES)

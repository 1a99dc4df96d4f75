"""The rows about who somebody is: names, ages, homes, health, work, and what is over."""

from __future__ import annotations

from .personal_english_parts import (
    BE,
    BEEN,
    HAVE,
    KNOWN_DIETS,
    MONTHS,
    NAME,
    NO_VALUE,
    NOT,
    PASSING,
    PERFECT,
    PLACE,
    SHORT,
    STOP,
    TRAITS,
    WAS,
)
from .personal_english_rules import Rule, is_work, likes, own_rule, rule
from .personal_english_words import ADVERBS, WORK

_OWNED = (  # "my … is"
    own_rule("(?:full |real |first |last )?name", "name", value=NAME),
    own_rule("nickname", "nickname"),
    own_rule("birthday", "birthday"),
    own_rule("age", "age"),
    own_rule(
        "(?:current )?(?:job|profession|occupation)",
        "job",
        value=rf"(?:an? |being an? )?(?P<v>{WORK}){STOP}",
        check=is_work,
    ),
    own_rule("employer|company", "employer", value=rf"{NO_VALUE}{SHORT}"),
    own_rule("home ?town", "hometown"),
    own_rule("e-?mail(?: address)?", "email", value=r"(?P<v>\S+@\S+?)(?=[.,!]?(?:\s|$))"),
    own_rule(
        "(?:phone|mobile|cell|telephone)(?: number)?", "phone", value=r"(?P<v>[+\d][\d ()-]{4,})"
    ),
    own_rule("(?:home |postal )?address", "address"),
    own_rule("major", "major"),
    own_rule(
        "(?:biggest |other |main )?(?:hobby|hobbies|interests?|passions?)", "likes", is_list=True
    ),
    own_rule(r"(?:all-time )?favourites?(?: \w+){1,4}", "*", value=rf"(?!the one|one\b){SHORT}"),
    own_rule("goal|dream|plan|ambition|resolution", "plan"),
    own_rule(rf"(?!{PASSING}$|favourites?$)\w+(?: \w+)?", "*", value=rf"{NO_VALUE}{SHORT}"),
)

_OVER = (  # what was so, and is no longer
    rule(rf"used to (?:live|reside|be based) in {PLACE}", "home", ended=True),
    rule(rf"used to work (?:at|for) {SHORT}", "employer", ended=True),
    rule(rf"used to (?:work as|be) an? {SHORT}", "job", ended=True),
    likes(rf"used to (?:like|love|enjoy) {SHORT}", ended=True),
    rule(rf"used to {SHORT}", "habit", ended=True),
    rule(rf"(?:no longer lives?|{NOT}live) in {PLACE}", "home", ended=True),
    rule(rf"(?:no longer works?|{NOT}work) (?:at|for) {SHORT}", "employer", ended=True),
    rule(rf"(?:no longer works?|{NOT}work) as an? {SHORT}", "job", ended=True),
    likes(rf"{ADVERBS}no longer (?:likes?|loves?|enjoys?) {SHORT}", polarity=-1, change=True),
    likes(
        rf"{NOT}(?:like|love|enjoy) (?P<v>[^\n.!;]+?)\s(?:any\s?more|any longer)\b",
        polarity=-1,
        change=True,
    ),
    rule(
        rf"{ADVERBS}(?:quit|left|lost) (?:my|her|his|their|the) (?:\w+ )?job (?:at|with) {PLACE}",
        "employer",
        ended=True,
        change=True,
    ),
)

_IDENTITY = (
    rule(rf"{BE}(?:called|named) {NAME}", "name"),
    rule(r"go(?:es)? by (?P<v>[a-z]\w+)", "nickname"),
    rule(
        rf"{BE}{ADVERBS}(?:an? )?(?P<v>\d{{1,3}})"
        r"(?=[.!,;]|\s(?:years?\sold|now|and|this year|today)|-years?-old|$)",
        "age",
    ),
    rule(rf"{ADVERBS}{PERFECT}turn(?:ed|s)? (?P<v>\d{{1,3}})\b", "age", change=True),
    rule(rf"{WAS}born (?:on|in) (?P<v>(?:(?:{MONTHS})\b|\d)[^\n.!;]*?){STOP}", "birthday"),
    rule(
        rf"(?:{WAS}born(?: and raised)?|grew up|{WAS}raised|{BE}{ADVERBS}(?:originally )?from"
        rf"|comes? from)(?: in)? {PLACE}",
        "hometown",
    ),
    rule(
        rf"{ADVERBS}(?:{BE}{ADVERBS}(?:living|based)|lives?|resides?|{BEEN}living|ha(?:ve|s) lived)"
        rf" (?:here |alone |together |abroad )?(?:in|at|near|on|outside) {PLACE}",
        "home",
    ),
    rule(rf"lived in {PLACE}", "home", ended=True),
    rule(
        rf"{ADVERBS}{PERFECT}(?:moved|relocated)(?:\s(?:back|here|away|out|in))?"
        rf"(?:\sfrom\s[^\n.!;]+?)?\sto\s(?!the (?:next|other)){PLACE}",
        "home",
        change=True,
    ),
    rule(
        rf"{ADVERBS}(?:settled(?: down)?|bought an? (?:\w+ )?(?:house|flat|home"
        rf"|apartment)) in {PLACE}",
        "home",
        change=True,
    ),
    rule(rf"{BE}{ADVERBS}(?P<v>married|single|divorced|engaged|widowed|separated)\b", "marital"),
    rule(rf"{ADVERBS}{PERFECT}got (?P<v>married|engaged|divorced)\b", "marital", change=True),
    rule(rf"{BE}{ADVERBS}(?:an? )?(?:strict |lifelong )?(?P<v>{KNOWN_DIETS})\b", "diet"),
    rule(rf"{ADVERBS}(?:became|went|turned) (?:an? )?(?P<v>{KNOWN_DIETS})\b", "diet", change=True),
    rule(rf"{BE}{ADVERBS}(?:severely )?allergic to {SHORT}", "allergy", is_list=True),
    rule(rf"{HAVE}an? (?:\w+ )?allergy to {SHORT}", "allergy", is_list=True),
    rule(rf"{HAVE}an? (?:severe |mild )?(?P<v>[\w ]+?) allergy\b", "allergy"),
    rule(
        rf"(?:{WAS}|(?:have|'ve) been |got ){ADVERBS}diagnosed with {SHORT}", "health", change=True
    ),
    rule(rf"(?:suffers?|{BE}suffering) from {SHORT}", "health", is_list=True),
    rule(rf"{BE}{ADVERBS}(?P<v>{TRAITS})\b", "trait"),
)

_WORKING = (
    rule(
        rf"(?:{ADVERBS}works?|{BE}{ADVERBS}working|{BEEN}working) as (?:an? |the )?{SHORT}",
        "job",
    ),
    rule(
        rf"(?:{ADVERBS}works?|{BE}{ADVERBS}working|{BE}employed|{BEEN}working)"
        r" (?:full-time |part-time |remotely )?(?:at|for)"
        rf" (?!home\b|it\b|night|least|a living|the (?:moment|same)|my ){PLACE}",
        "employer",
    ),
    rule(rf"(?:{ADVERBS}works?|{BE}{ADVERBS}working) in (?!progress){SHORT}", "field"),
    rule(
        rf"{ADVERBS}{PERFECT}(?:started|got|landed|took|accepted) (?:working|work|the job"
        rf"|an? (?:new )?(?:job|position|role|internship)) (?:at|with|for) {PLACE}",
        "employer",
        change=True,
    ),
    rule(
        rf"{ADVERBS}{PERFECT}(?:got|landed|started|began|accepted|have|has) (?:an? )?(?:new )?"
        rf"(?:working|job|position|role) as (?:an? )?{SHORT}",
        "job",
        change=True,
    ),
    rule(
        rf"{ADVERBS}{PERFECT}(?:became|(?:got|{WAS}|been )\s?promoted to) (?:an? |the )?"
        rf"(?P<v>{WORK}){STOP}",
        "job",
        change=True,
        check=is_work,
    ),
    rule(rf"(?:{ADVERBS}stud(?:y|ies)|{BE}{ADVERBS}studying)(?: [\w ]+?)? at {PLACE}", "school"),
    rule(
        rf"(?:attends?|{BE}attending|goes? to|{BE}enrolled (?:at|in)) "
        rf"(?P<v>[^\n.!;,]*?(?:university|college|school|academy|institute)[^\n.!;,]*?){STOP}",
        "school",
    ),
    rule(
        rf"(?:{BE}majoring|majors?|majored|have an? (?:degree|phd|master's(?: degree)?))"
        rf" in {SHORT}",
        "major",
    ),
    rule(
        rf"{BE}{ADVERBS}an? (?P<v>{WORK})"
        r"(?=[.!,;]|\s(?:at|in|for|from|by|and|who|with|but|of|now)\b|$)",
        "job",
        check=is_work,
    ),
)

ROWS: tuple[Rule, ...] = (*_OWNED, *_OVER, *_IDENTITY, *_WORKING)

"""English function words: openers, questions, hypotheticals, and verbs of thinking and saying."""

from __future__ import annotations

import re

from ..patterns import either

_SHORTENED = """
    I'm I've don't doesn't didn't can't won't isn't aren't wasn't haven't hasn't he's she's they're
    that's we've couldn't wouldn't there's what's
"""
_AS_TYPED = {"i": "I"} | {each.lower().replace("'", ""): each for each in _SHORTENED.split()}
_TYPED = re.compile(r"(?<![\w'])(?:" + "|".join(_AS_TYPED) + r")(?!\w)", re.IGNORECASE)


# Trailing interjections.
_SIGHS = re.compile(r",?\s(?:lol|haha|ugh|btw|tbh|obviously|poor thing)(?=[.!]*$)", re.IGNORECASE)


def plain(text: str) -> str:
    """Return a text with missing apostrophes restored, a capital I and no trailing interjection."""
    typed = _TYPED.sub(lambda match: _AS_TYPED[match.group().lower()], text)
    return _SIGHS.sub("", typed)


def _start(lines: str) -> re.Pattern[str]:
    return re.compile(rf"{either(lines)}\b", re.IGNORECASE)


# Openers that do not change the meaning of a clause.
_OPENINGS = either(r"""
hi | hey | hello | hiya | good (?:morning|evening|afternoon) | morning | oh | ah | well | so
yes | yeah | yep | no(?=[,!]) | nope
ok(?:ay)? | sure | thanks | thx | ty | actually | btw | by the way | also | anyway | honestly
tbh | to be honest | and | but
plus | fyi | lately | recently | currently | these days | nowadays | now | of course | in fact
unfortunately | sadly
haha | lol | hmm+ | um+ | right | besides | however | then | because | since(?! \d)
guess what | good news | big news | news | update | finally | apparently | basically
great | cool | nice | wow | ugh | sorry | alright | even though | although | though
for the record | me(?= I\b) | unrelated
which is why | not that
(?:(?:please |pls )?(?:note|remember|keep in mind)|just so you know) (?:that )?(?=I\b|my\b|we\b)
turns out (?=my\b|our\b|(?-i:[A-Z][a-z]))
as for me | personally | luckily | fortunately | so far | big step | one correction | correction
""")
OPENER = re.compile(rf"(?>(?:{_OPENINGS})\b[\s,.!:;-]*|[^\w\s]+\s*)*+", re.IGNORECASE)
# Time expressions that may precede the subject.
LEAD = re.compile(
    r"(?:today|yesterday|tonight|tomorrow|now|(?:this|last|next|every|each) \w+|(?:in|on|from"
    r"|since|at|after|as|for) [\w']+(?: \w+){0,2}?|"
    r"(?:an?|two|three|a few|\d+) \w+ ago),?\s(?=(?:I|my|we|our)\b)",
    re.IGNORECASE,
)
INTENDS = re.compile(
    r"\b(?:plan\w*|thinking (?:of|about)|wants? to|wanna|hop(?:e|ing) to|consider\w*|looking"
    r" (?:for|to|at)|trying to|might|someday|"
    r"one day|eventually|dreaming|tempted|talking about|supposed to)\b"
)
DENIES = re.compile(
    r"\b(?:not|never|ain't|aint|didn't|haven't|hasn't|isn't|wasn't|without|no)\s(?:\w+\s){0,2}$"
)
ASKS = _start(r"""
what(?!ever) | how | who | whom | which | where | when | why | can | could | would | will | do
does | did | is | are | am
should | shall | may | any | you | your | u | please | pls | need | help | give | tell | write
make me | explain | put | find
show | suggest | recommend | convert | summari[sz]e | translate | remind | check | go on
let's | let me | think | note | is it
""")
UNREAL = re.compile(
    r"\b"
    + either(r"""
if | unless | imagine | suppose | supposing | pretend | wish | would | wouldn't | I'd | could
might | hypothetically
as though | dream(?:t|ed|ing)? | maybe | perhaps | should | jk | just kidding | joking
not really | sort of joking | (?:was|were) (?:going|planning|hoping) to
(?:had )?wanted to(?! move)
whether | in theory | in another life | one day I | we'd | he'd | she'd | they'd
""")
    + r"\b",
    re.IGNORECASE,
)
SUBORDINATE = re.compile(
    r"\b(?:since|because|cos|bc|when|after|before|until|till|who|which|while|so that|though"
    r"|although)\b"
)
# Thoughts, feelings and announcements are not lasting facts.
IDLE = re.compile(
    r"\s*(?:(?:really|also|just|still|totally|always|actually|'m|am|'ve|have|was|do|so|kinda|did"
    r"|very|quite|pretty|not|a bit|a little|too)\s)*"
    + either(r"""
think | guess | mean\b | know | agree | understand | appreciate | see\b | wonder | believe
bet | suppose | feel\w* | felt
hear\b | heard | doubt | remember | reali[sz]ed? | notice\w* | swear | thank | promise | hope
can't (?:wait|believe
imagine | thank | help | agree | tell | say)
don't (?:know|think|mind|understand|see|get|care|want you) | said | told | asked
tired | hungry | bored | busy | ready | curious | sorry | glad | happy | sure | fine
ok(?:ay)? | good\b(?! at) | great\b(?! at)
excited | proud | grateful | thrilled | confused | worried | stuck | looking forward
wondering | thinking | asking | talking
kidding | 'll | will (?:try|check|let|see|think|look|do)
need (?:your|you|some|to|help|advice|a|an)\b | have (?:an? )?(?:\w+ )?(?:question
problem | idea | feeling | point)
(?:like|love) (?:it|that|this|your|you|how|the (?:idea|sound))\b | a (?:bit|little) | wanted to
want (?:you|to (?:ask|know|hear|talk|say|tell|share)) | having (?:trouble|fun) | getting
trying to | going to (?:bed|sleep|try) | back\b
""")
    + r"",
    re.IGNORECASE,
)
# What people say about themselves is a fact; what else they say is not.
SAYS = re.compile(
    r"(?:just |always |also |keeps? |once )?(?:says?|said|saying|told|tells?|thinks?|reckons?"
    r"|asked?s?|claims?|insists?|informs?"
    r"|mentioned|suggest\w*|wants me|wrote|texted|joked|swears|quoted)\b(?!\s(?:that\s)?(?:he"
    r"|she|they|he's|she's|they're)\b)",
    re.IGNORECASE,
)
# Pieces that omit the "I": "got a job", "quit smoking", "still in town".
BARE = _start(r"""
got | quit | moved | moving | started | starting | start | stopped | broke | left | bought
sold | finished | had | went | joined
became | turned | lost | found | live | work | living | working | still | just | retired | born
hate | love | can't | don't
no\b | not | never | allergic | married | divorced | single | pregnant | promoted | fired
took | gave | signed | booked
handed | been | gonna | going | planning | used to | currently | engaged | adopted | switched
gone | back (?:to|on|in|at|with)
passed my | passed the | failed | drive | drove | done | taken | picked | packed | dropped
came | ended | accepted | landed
training | learning | dating | seeing | on \d+ | off the | celebrating | taking
\d+(?=[,.]| years) | new (?:job|flat|house|place|car
boss | phone | role | year new)
(?!wedding|morning|evening|something|nothing|anything|everything|thing|building|meeting|king|spring|need)[a-z]+(?:ing|[^e]ed)
due | sober since | cancelled | swapped | changed | sober | vegan | vegetarian
""")

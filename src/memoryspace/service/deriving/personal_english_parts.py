"""Parts of English clauses that the rules of personal memory are put together from."""

from __future__ import annotations

from .personal_english_words import ADVERBS, either

BE = r"(?:am|is|are|'m|'s|'re)\s"
WAS = r"(?:was|were)\s"
HAVE = r"(?:(?:have|has|'ve|'s)\sgot|have|has|do have)\s(?:also\s)?"
PERFECT = r"(?:(?:have|has|'ve|'d|had)\s(?:just |recently |finally |already |also )?)?"
BEEN = r"(?:have|has|'ve|'s)\s(?:\w+ly\s|also\s|just\s)?been\s"
NOT = r"(?:do not|don't|does not|doesn't)\s(?:really |particularly |much )?"
NUMBER = "(?:an?|one|two|three|four|five|six|seven|eight|nine|ten|\\d+|several|many|some|no)"
TO_NOTHING = r"(?!(?:it|that|this|you|your|how|what|when|the way|the idea|these|those|them)\b)"
# A value ends where a reason, a duration or another clause begins.
STOP = (
    r"(?=[.!;:(…]|,?\s(?:"
    + either(r"""
because | since | so that | so i | but | when | while | which | where | though | although | as it
as i | as they | if
for (?:the (?:past|last)|about|over|nearly|almost|\w+ (?:year|month|week|day)s?)
these days | now(?:adays)? | at the moment | right now | currently | too | as well | a lot
very much
so much | with (?:my|an?|the|some|two|three) | and (?:i|it|they|we|he|she|my|that|have|am)
lately | recently | any\s?more | last (?:week|month|year) | (?:two|three|\d+|a few) \w+ ago
""")
    + r")\b|\s-+\s|$)"
)
ANY_VALUE = r"(?P<v>[^\n]+)"
SHORT = rf"(?P<v>[^\n.!;]+?){STOP}"
# "Lyon, France" is one place; in "Lyon, which I love" it ends before the comma.
PLACE = rf"(?P<v>[^\n.!;,]+?(?:,\s[^\W\d_]+(?=[.!;]|$))?)(?:(?=,)|{STOP})"
KNOWN_DIETS = either("""
vegetarian | vegan | pescatarian | gluten[- ]free | lactose[- ]intolerant | celiac | coeliac
diabetic | halal | kosher
""")
TRAITS = either("""
pregnant | left-handed | colou?r-?blind | deaf | blind | retired | unemployed | self-employed
adopted | bilingual | transgender | gay | lesbian | an introvert | an extrovert | introverted
extroverted
""")
GOES_ON = either("""
learning | studying | reading | writing | training | working on | taking | preparing | saving
building | practi[sc]ing | volunteering | looking for | raising | renovating | researching
teaching
composing | recovering | designing | developing | painting | watching | playing | rehearsing | doing
growing | exploring | organi[sz]ing
""")
MEANS_TO = either(rf"""
{BE}{ADVERBS}(?:planning|hoping|aiming|intending|preparing|considering|about to|dreaming of|set to)
{BE}{ADVERBS}thinking (?:of|about) | {ADVERBS}(?:plans?|hopes?(?= to )|intends?|aims?|dreams?)
(?:have |has |'ve )?decided | have plans | (?:have|'ve) been (?:planning|thinking about)
""")
TALK = (
    r"(?!(?:"
    + either("""
ask | know | hear | talk | share | tell | say | see if | be able | do something | make sure | chat
try (?:it|that|this) | give | find out | express | thank | discuss | do (?:that|it|this) | keep
go to (?:sleep|bed) | be | check | start by | take a look | have to | need | think | miss | it
that
you | this | your | how | what | things | see (?:it|that|them|your) | join you | learn more
help you
read (?:it|that) | for sure | but | improve
""")
    + r")\b)"
)
SOON = either("""
getting married | moving | flying | travell?ing | starting | going | leaving | visiting | having
taking | retiring | switching | changing | seeing | meeting | hosting | running | graduating
expecting
""")
OFTEN = r"(?:always|usually|never|rarely|typically|normally|often|regularly)"
AGAIN = either(r"""
every (?:\w+ )?\w+ | each \w+ | daily | weekly | once an? \w+ | twice an? \w+ | times an? \w+
on (?:weekends|\w+days) | most (?:days|mornings|evenings|nights) | regularly | in the mornings?
before bed
""")
HABITS = either("""
go(?:es)? | runs? | wakes? | gets? up | drinks? | eats? | works? out | exercises? | meditates?
cooks? | bakes? | practi[sc]es? | swims? | walks? | reads? | watch(?:es)? | listens? | jogs?
trains? | do | does | volunteers? | plays? | attends? | skips? | takes? | visits? | sleeps?
writes? | paints? | travels? | commutes? | hikes? | cycles?
""")
PASSING = either(r"""
day | mood | question | idea | point | guess | problem | thoughts? | pleasure | fault | apologies
head | mind | heart | turn | bad | opinion | understanding | advice | suggestion | first time
feelings? | time | week | weekend | morning | night | life | concern | main \w+ | biggest \w+
only \w+ | next \w+ | answer | issue | impression | hope | wish | eyes? | stomach | back | throat
progress | work | performance | \w+ question | family | body | experience | journey
""")
NO_VALUE = (
    r"(?!(?:"
    + either(r"""
very | so | really | going | getting | not | quite | pretty | too | also | always | that | to | good
great | bad | fine | amazing | awesome | the best | just | nice | important | broken | here | there
ready | full | still | a bit | a little | in | on | at | \w+ing | more | my | such | all
everything
""")
    + r")\b)"
)
NAME = r"(?P<v>[a-z][\w'-]*(?:\s[a-z][\w'-]+){0,2}?)(?=[.!,;]|\s(?:and|but)\b|$)"
MONTHS = "january|february|march|april|may|june|july|august|september|october|november|december"

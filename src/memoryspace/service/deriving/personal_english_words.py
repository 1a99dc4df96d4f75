"""English words that the rules of personal memory know: what opens a clause, what is idle."""

from __future__ import annotations

import re


def either(lines: str) -> str:
    """Return alternatives, separated by bars or line breaks, as one group of a pattern."""
    parts = [part.strip("| ") for line in lines.splitlines() for part in line.split(" | ")]
    return f"(?:{'|'.join(part for part in parts if part)})"


# What may stand before "I" without changing what is said.
_OPENINGS = either(r"""
hi | hey | hello | hiya | good (?:morning|evening|afternoon) | oh | ah | aw+ | well | so | yes
yeah
yep | yup | no | nope | ok | okay | sure | thanks(?: so much| a lot)? | actually | btw | by the way
thank you(?: so much| very much)? | also | anyway | honestly | to be honest | you know | and | but
plus | fyi | lately | recently | currently | these days | nowadays | now | of course | in fact
as for me | personally | unfortunately | luckily | fortunately | sadly | great | cool | wow | nice
haha | hmm+ | um+ | right | besides | however | still | then | today | yesterday | tonight
tomorrow
last night | (?:this|last|next) \w+ | in (?:19|20)\d\d | on \w+day | for (?:years|now|a while)
since then | (?:an?|two|three|few|a few|\d+) \w+ ago | (?:just )?to let you know | because | since
as a (?:kid|child|result) | after all | even though | although | though | for example | first
in my (?:free|spare) time | secondly | firstly | finally | sorry | alright | absolutely | definitely
true | same here | me too | it's me | fun fact | not really | growing up | basically | apparently
""")
OPENER = re.compile(
    rf"(?>{_OPENINGS}\b[\s,.!:;-]*(?:\w+,\s)?"
    r"|(?!if\b|unless\b|suppose\b|imagine\b)[^,]{1,45},\s(?=(?:i|my|we)\b)|[^\w\s]+\s*)*+"
    r"(?=(?:i|my|our|we)\b)"
)

PETS = either("""
dogs? | cats? | pupp(?:y|ies) | pups? | kittens? | rabbits? | hamsters? | parrots? | birds? | fish
goldfish | turtles? | horses? | guinea pigs? | pets? | tortoises? | snakes? | lizards? | budgies?
bunn(?:y|ies) | corgi | poodle | labrador | retriever | husky | beagle | chickens? | pony
""")
FAMILY = either("""
kids? | child(?:ren)? | sons? | daughters? | sisters? | brothers? | siblings? | twins? | wife
bab(?:y|ies) | grand(?:children|kids|sons?|daughters?) | husband | girlfriend | boyfriend
partner | cousins? | nephews? | nieces?
""")
WORK = r"(?:[\w'][\w' -]*?\s)?" + either(r"""
\w+(?:er|or|ist|ian|ant|eer|ician|grapher|yst|ess|smith|wright|tect|man|woman) | nurse | chef
cook | coach | student | freshman | sophomore | pilot | judge | clerk | guide | scientist | intern
boss | ceo | cto | cfo | surgeon | dean | vet | barista | housewife | mechanic | assistant | model
poet | priest | monk | agent | dj | undergraduate | postdoc | phd candidate | attorney
""")
NO_WORK = re.compile(
    r"\b"
    + either("""
fan | lover | person | member | believer | supporter | beginner | listener | reader | mother
father | sister | brother | daughter | winner | loser | fighter | foreigner | vegetarian | better
bigger | matter | number | chapter | newcomer | planner | survivor | over | ever | after | under
never | water | disaster | computer | stranger | gamer | christian | collector | follower | learner
thinker | partner | lifesaver | starter | factor | reminder | winter | summer | drinker | eater
sucker | goner | woman | man | human | riser | sleeper | cheater | doer | procrastinator
dreamer | hoarder | sinner | night owl | important | brilliant | relevant | different
""")
    + "$"
)
# Past tenses with which something happened to somebody.
HAPPENED = either(r"""
bought | visited | met | started | finished | graduated | adopted | joined | signed up | won(?!')
lost
broke | moved | quit | left | sold | began | completed | attended | travell?ed | flew | celebrated
launched | published | passed | failed | enrolled | registered | opened | founded | retired
ran (?:a|my|the|into) | climbed | received | donated | planted | hosted | organi[sz]ed | hiked
applied | interviewed | ordered | booked | proposed | gave birth | had (?:an?|my|surgery|our)
went (?:to|on|hiking|camping|swimming|skiing|fishing|shopping|back|for|through|with|out|abroad)
went (?:surfing|dancing|cycling|running|climbing|sailing|kayaking|bowling)
took (?:a|my|part|up|the|our|some) | learned | learnt | painted | built | created | wrote | made
got (?:married|engaged|divorced|promoted|hired|fired|accepted|my|an?|back from|into|hurt|injured)
baked | cooked | saw | watched | read | tried | spent | helped | volunteered | performed | played
participated | competed | injured | hurt | fell | crashed | repaired | fixed | found | discovered
earned | saved | invested | switched | changed | upgraded | became | gave | named | beat | reached
tore | sprained | dropped out | broke up | separated | tested positive | underwent | paid off
""")
# "Had a great time", "made it", "found that": nothing that anybody could ask about later.
_NOTHING = either(r"""
it | that | this | them | you | your | him | her | those | these | my best | my mind | home
\w+ (?:it|them|that|this|those|these|him|her|you|one)(?:\s(?:too|again|today|before|yet|and|-).*)?
some (?:interesting )?(?:new )?things? | a (?:lot|bit|few) | one | something .* | alright | ever
had an? (?:\w+ )?(?:blast|time|experience|day|week|weekend|night|feeling|chat|talk|idea)\b.*
had an? (?:\w+ )?(?:question|conversation|moment|look|thought|problem|issue|taste|chance|lot)\b.*
got (?:an? (?:\w+ )?(?:chance|lot|bit|idea|feeling|question|kick|sense)|it|into it)\b.*
found (?:it|that|this|out|them|my|myself)\b.* | made (?:it|me|my|sure|up|sense|a difference)\b.*
learned (?:a lot|so much|that|some)\b.* | gave (?:it|me|up|them)\b.* | tried (?:it|that|my|to)\b.*
started (?:to feel|feeling|thinking|to think|getting|caring|focusing)\b.* | a variety .*
took (?:a look|my time|the time|a break|it|some time)\b.* | went through .* | spent (?:it|some)\b.*
read (?:it|that|your|about it)\b.* | saw (?:it|that|your|you|how|this)\b.* | ended up .*
lost (?:my way|interest|track|it)\b.* | left (?:it|me|us)\b.* | became (?:more|a bit|so|very)\b.*
whether .* | (?:i|it|we|you|he|she|they|everything|things|how|what) .* | going | doing | nothing
so | their \w+ | .*\blike (?:that|this) | a (?:month|week|while) | my part | started doing this.*
(?:read|saw|tried) (?:a few|some|one) of .* | (?:got|had) an? \w+ turnout.* | where .*
to | me | everywhere | (?:the )?\w+ of (?:it|this|that|these|those|yours|them) | up | gave in
all .*
this \w+ | more | some | stuff | a variety of .* | release .* so .* | stay positive .*
.*check it out
""")
EMPTY = re.compile(rf"{_NOTHING}[.!]*", re.DOTALL)
# Of "I like the plot" only what everybody knows is a taste.
THE_KNOWN = re.compile(
    r"the (?!(?:\w+ )?"
    + either("""
beach | sea | ocean | outdoors | mountains? | piano | guitar | violin | cello | flute | drums | rain
snow | sun | city | countryside | theat(?:re|er) | cinema | gym | opera | ballet | forest | woods
water | cold | heat | dark | beatles | lakers | seaside | sunshine | winter | summer | autumn
""")
    + r"\b)\w+$"
)
_MOODS = either("""
sorry | glad | happy (?:to|that|for) | sure | afraid (?:that|not|i|so) | here | back | fine | ok
okay | good\\b(?! at) | great\\b(?! at) | so | just | tired | hungry | bored | busy | ready
curious
(?:very|really|so|super) (?:happy|glad|sorry|tired|excited|proud|grateful|thankful) | wondering
thrilled | honou?red | grateful | thankful | proud | excited | feeling | not sure | all | feel
doing (?:well|good|great|fine|ok|alright|okay) | looking forward | definitely | a bit | a little
having (?:trouble|difficulty|an?|some|fun|problems) | asking | talking | telling | saying | kidding
joking | totally | quite | pretty | stuck | worried | going to (?:bed|sleep|try|give|check|start|do)
going to (?:take a look|miss|have|go (?:now|to (?:bed|sleep))) | gonna (?:try|give|check|do)
""")
_THOUGHTS = either(rf"""
think | guess | mean | know | agree | understand | appreciate | see | wonder | believe | bet
suppose | feel | felt | hear | heard | doubt | remember | realize | realise | notice | swear | thank
promise | hope (?:you|it|that|this|we|so|everything|i) | can't (?:wait|believe|imagine|thank|help)
can't (?:agree|tell|say) | couldn't | don't (?:know|think|mind|understand|see|get) | do think
look forward | (?:'m|am|'re|are) {_MOODS} | 'll | saw (?:that|your|you) | said | told you | asked
will (?:try|check|let|do|be|take|give|have|keep|definitely|see|think|remember|look|go|make|also)
was (?:just|wondering|thinking|so|really|very) | mentioned | would like (?:you|to) | wanted to
have to | have (?:an? )?(?:question|problem|feeling|good|great|hard|doubt|suggestion|request|bit)
have (?:a )?(?:point|lot|few questions|headache|cold|fever|meeting|test|favou?r|no idea|thought)
have (?:an )?(?:idea|exam|issue|appointment) | have (?:questions|trouble|fun|faith|time|heard)
have (?:some (?:questions?|ideas?|news|time|problems?|trouble)|never thought|seen|noticed)
(?:have|'ve) been (?:feeling|thinking|wondering|well|good|great|busy|meaning|having|told|better)
've (?:thought|heard|seen|noticed|got (?:to|it)|always (?:thought|wondered|felt))
need (?:your|you|some|to|help|advice) | want you | am (?:an? )?(?:ai|assistant)
like (?:your|it|that|this|you|the (?:idea|sound|way)|how|what|when|him|her|them|to (?:ask|know))
love (?:you|it|that|this|your|how|the (?:idea|sound|way)|what|when|hearing|these|those|them|him)
love (?:her|to (?:hear|know|see it)) | enjoy (?:it|that|this|talking|chatting|your|our|them|these)
enjoyed (?:talking|chatting|our) | meant | thanked | forgot to
""")
ADVERBS = rf"""(?:{
    either('''
really | also | still | just | now | currently | actually | absolutely | always | usually | often
especially | mostly | definitely | truly | recently | finally | only | totally | both | all
already
particularly | mainly | super | very | quite | pretty | so | have always | 've always | do | even
generally | primarily | genuinely | simply | deeply | a bit | big | strongly | kind of
''')
}\s)*"""
IDLE = re.compile(rf"{ADVERBS}{_THOUGHTS}\b")


def is_idle(predicate: str) -> bool:
    """Tell whether somebody says nothing lasting: a thought, a mood, a courtesy."""
    return IDLE.match(predicate) is not None

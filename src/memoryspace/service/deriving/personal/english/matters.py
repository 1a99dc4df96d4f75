"""Matters (areas of life) in English, and the words that say that something began or ended.

A matter is a row: the words that indicate it, and the words that express a change of it. A change
in an exclusive matter (``facts.EXCLUSIVE_MATTERS``) ends what was known before.
"""

from __future__ import annotations

import re

from ..patterns import Matter, either


def _matter(name: str, words: str, turns: str | None = None) -> Matter:
    ends = None if turns is None else re.compile(rf"\b{either(turns)}")
    return Matter(name, re.compile(rf"\b{either(words)}(?!\w)"), ends)


RELATIONS = either(r"""
(?:older | younger | big | little | elder | eldest | youngest | oldest
middle)\s(?:sister|brother|son
daughter | boy | girl | kid)
[a-z]+[- ]in[- ]law | mother | mom | mum(?:my)? | mam | ma(?=\s|'s) | moms | pa(?=\s) | father
dad(?:dy)? | parents
sister | sis | brother | bro
(?:ex-?\s?)?(?:wife | husband | girlfriend | boyfriend | gf | bf) | hubby | missus | partner
spouse
fianc[eé]e? | son | lad | daughter | kids? | child(?:ren)? | eldest | youngest | grand\w+ | gran
nan(?:a|ny)? | granny | roomie | lil (?:bro|sis) | uncle | aunt(?:ie|y)? | cousin | nephew
niece | boss | manager | roommate | flatmate
housemate | neighbou?r | colleague | co-?worker | workmate | (?:best |close |old )?(?:friend
mate | pal)
toddler
bestie | buddy | teacher | tutor | coach | mentor | therapist | doctor | landlord | landlady | twin
ex | family | girl | boy | baby
""")
ANIMALS = either("""
dogs? | cats? | pupp(?:y|ies) | pups? | kittens? | rabbits? | hamsters? | parrots? | birds? | fish
goldfish | turtles? | horses? | guinea pigs? | pets? | tortoises? | snakes? | lizards? | budgies?
bunn(?:y|ies) | poodle | labrador | lab | retriever | husky | beagle | chickens? | hens? | pony
ferrets? | greyhound | terrier | collie | spaniel | corgi | mutt | geckos? | rats? | ducks? | goats?
whippet | tabby | dachshund | rescue | canary | cockatiel | gerbils? | donkeys? | alpacas?
""")
# "Moved to Friday" is not about a home.
_NO_TIME = (
    r"(?! (?:mon|tue|wed|thu|fri|sat|sun|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|\d))"
)
_OCCUPATION = r"(?:an? |the )?(?:[\w'-]+ ){0,3}?" + either(r"""
\w+(?:ist|ician|grapher|keeper|worker|driver|teacher|engineer|officer|analyst|assistant|operator)
nurse | chef | cook | pilot | electrician | plumber | mechanic | barista | baker | vet | physio
therapist | clerk | lawyer | solicitor | accountant | student | manager | designer | developer
programmer | writer | editor | joiner | carpenter | welder | farmer | waiter | waitress | porter
paramedic | midwife | doctor | surgeon | researcher | consultant | cleaner | builder | technician
trainer | instructor | lecturer | tailor | butcher | freelancer | translator | planner | supervisor
controller | leader | director | cto | ceo | founder | owner | foreman | carer | nanny
pharmacist | intern | apprentice | librarian | hairdresser | gardener | firefighter | soldier
""")

# "Left the hospital" may only mean a visit.
_LEAVING_WORK = (
    r"(?:quit|left|lost|leaving) (?:my|the|that|his|her|their) (?:\w+ )?"
    r"(?:job|firm|company|agency|role|post)\b"
)

# In order of precedence: a clause is about the first matter it touches.
MATTERS = (
    _matter(
        "name",
        r"(?:full |real |first |last |legal |nick)?name (?:is|was|'s) | changed my name | called me"
        r" | calls me | call me | go by | goes by | known as",
        r"changed my name | new name | go by \w+ (?:now|these) | call me \w+ now | name is now"
        r" | don't call me | not \w+ any",
    ),
    _matter(
        "death", r"died | passed(?! (?:my|the|it|her|his|with))(?: away)? | put (?:him |her )?down"
    ),
    _matter(
        "birthday",
        r"birthday (?:is|'s|falls) | born (?:on|in) | turn(?:s|ed|ing)? \d+ | \d+ years? old",
    ),
    _matter(
        "smoking",
        r"smok\w+ | cigarettes? | vap(?:e|es|ing) | tobacco",
        r"quit | stopped | gave up | given up | smoke[- ]free | again | smoking now | started |"
        r" since",
    ),
    _matter(
        "alcohol",
        r"alcohol | sober | booze | drinking(?! (?:tea|coffee|water)) | beers? | wine | teetotal",
        r"quit | stopped | gave up | given up | sober | again | off the | back on | don't drink",
    ),
    _matter(
        "diet",
        r"vegetarian | vegan | pescatarian | keto | halal | kosher | gluten | dairy | lactose |"
        r" coeliac"
        r" | celiac | jain | diet | can(?:not|'t)? (?:only )?eat | only eat | anything (?:except"
        r"|but) | everything (?:except|but) | (?:green )?tea only | (?:no|don't eat|can't eat"
        r"|eating|eats?) (?:meat|fish|pork|sugar|eggs|chicken|beef)",
        r"went (?:vegan|vegetarian|veggie) | (?:turned|became) (?:a )?veg\w+ | eat(?:ing)?"
        r" (?:meat|fish|eggs"
        r"|dairy) (?:again|now) | (?:not|no longer) (?:a )?(?:vegan|vegetarian) | started eating"
        r" | quit being | stopped being | gave up being",
    ),
    _matter(
        "allergy",
        r"allerg\w+ | intoleran\w+ | hives | anaphyla\w+ | epipen | throat closes | can't"
        r" (?:have|eat)"
        r" | cannot (?:have|eat)",
        r"outgrew | grown out | grew out | not allergic | no longer allergic | turns out i'm not",
    ),
    _matter(
        "medication",
        r"\d+\s?mg | pills? | tablets? | medication | meds | dose | prescri\w+ | inhaler |"
        r" insulin | statins?"
        r" | antibiotics? | patch(?:es)? | injections? | i take \w+ (?:every|each|twice|once|at)"
        r" | (?:i'm|i am|been|put me) on (?!(?:a |the |my |holiday|leave|call|it|time"
        r"|track))\w+(?:ine|ol|in"
        r"|an|one|am|ide|pril|statin|mab)\b",
        r"dose | went up | went down | \d+\s?mg now | now \d+\s?mg | chang\w+ | switch\w+ | swapped"
        r" | off the | stopped | came off | instead | moved me (?:on)?to | put me on | upped |"
        r" lowered",
    ),
    _matter(
        "health",
        r"diagnosed | diabet\w+ | asthma\w* | pregnan\w+ | due in | surgery | operation | scan |"
        r" cancer"
        r" | migraines? | arthritis | adhd | autis\w+ | dyslexi\w+ | epilep\w+ | depress\w+ |"
        r" anxiety"
        r" | blood pressure | sea-?sick | (?:colou?r[- ])?blind | deaf | hearing aids? | wheelchair"
        r" | (?:bad|broke|broken|sprained|tore|torn|twisted|new|dodgy|gammy) (?:my )?(?:back"
        r"|knee|hip|ankle"
        r"|wrist|arm|leg|shoulder|foot|heart) | physio | expecting | baby on the way | on the"
        r" way, due"
        r" | a bad (?:back|knee|hip) | (?:knee|hip|back) (?:replacement|op)",
    ),
    _matter(
        "partner",
        r"married | divorc\w+ | engaged | separat\w+ | single | widow\w* | broke up | broken up "
        r"| split up"
        r" | split with | dumped | dating | seeing (?:someone|somebody|a (?:guy|girl|man|woman))"
        r" | propos\w+"
        r" | wedding | fianc[eé]e? | getting back together | back together | (?:my|the) (?:wife"
        r"|husband|gf|bf"
        r"|girlfriend|boyfriend|partner|hubby|missus|ex)(?!'s)",
        r"broke up | broken up | split (?:up|with) | separat\w+ | divorc\w+ | dumped | got"
        r" (?:married|engaged)"
        r" | (?:back|got back) together | wedding(?:'s| is) off | called off | made up | (?:we"
        r"|i) married"
        r" | getting (?:married|divorced) | left me | proposed | tied the knot",
    ),
    _matter("pets", ANIMALS),
    _matter(
        "work",
        r"works? | working | job | boss | shifts? | employ\w+ | laid off | redundan\w+ | fired |"
        r" sacked"
        r" | hir(?:e|ed|ing) | resign\w* | promot\w+ | retire\w* | freelanc\w+ | self[-"
        r" ]employed | my notice | careers? | office"
        r" | teach\w* | nights at | days at | part[- ]time | full[- ]time | salary | start(?:ed"
        r"|ing|s)? (?:at|as)"
        r" | made me(?! (?:\w+ing|feel|want|laugh|cry|think|do|so|go|look|sick|happy|sad|a"
        r" \w*(?:cake|coffee|tea))\b) | training as | for a living | joined [\w ]{2,30}? as"
        rf" | {_LEAVING_WORK} | (?:he|she|now) (?:runs?|manages?) (?:an?|the|his|her)"
        r" | business | i do [a-z ]{2,25}? (?:for|at) (?:an?|the|my) | i (?:run|manage) (?:an?"
        r"|the) | run my own | apprenticeship |"
        r" internship | new post"
        r" | by day | i do (?:payroll|accounts|admin|it) | i drive (?:an? |the )?(?:trams?|bus"
        r"|buses|trains?|trucks?|lorr(?:y|ies)|taxis?|cabs?|ambulances?|forklifts?)\b"
        r" | (?:i'm|i am) (?:an? |the )[\w -]{2,40}? (?:at|for|with)(?! (?:the moment|least|home"
        r"|the same))"
        rf" | ^{_OCCUPATION} (?:at|in|for|by)\b | (?:farm|shop|garage|pub|salon|stall)\b(?!"
        rf" animals) | articling"
        rf" | (?:i'm|i am|been|was|became|become|retired|as|junior|senior|head|trainee)"
        rf" {_OCCUPATION}",
        r"(?:got|landed|took|tak(?:e|ing)|accepted|start(?:ed|ing|s)?|begin|began|offered me)"
        r" (?:\w+ ){0,4}?(?:job|post|role"
        r"|position|contract|apprenticeship|internship)\b | (?:got|been|was|just) promoted |"
        r" made me (?:an?"
        r" |the )?\w+ | start(?:ed|ing|s)? (?:at|as|with) (?!home|the gym) | (?:new|different)"
        r" (?:job|role|post"
        r"|position|firm|employer|workplace) | joined (?:an? |the )?(?:firm|company|startup"
        r"|practice|team|staff)"
        r" | hired me | moved (?:practices|jobs|teams|companies|departments|schools|firms) |"
        r" switch(?:ed|ing)"
        r" (?:jobs|careers|companies|to (?:nights|days)) | training as | retrain\w* | became an? |"
        r" (?:quit|left|lost|leaving|resign\w* from) (?:my|the|that|his|her|their|\w+'s"
        r") (?:\w+ )?(?:job|firm|company|school|hospital|shop|bank|place|restaurant|agency"
        r"|office|role|post)"
        r" | resign(?:ed|ing) | gave (?:my |in (?:my )?)?notice | (?:my|in (?:my )?) ?notice |"
        r" laid off | fired | sacked | redundan\w+ | retired (?:last"
        r"|in|now|from) | got let go | let me go | closed down | shut down | quit (?!smoking"
        r"|drinking|vaping|sugar|the gym)\w+ing | no longer work\w* | (?:not|don't) work\w*"
        r" (?:\w+ )*?any\s?more"
        r" | i work \w+ \w+ now | i'm (?:the|an?) [\w ]+ now",
    ),
    _matter(
        "school",
        r"stud(?:y|ies|ying|ied) | universit\w+ | uni | college | school | degree | phd |"
        r" master'?s | major\w*"
        r" | exams? | graduat\w+ | thesis | course | dissertation | year \d+ | semester",
        r"dropped out | graduated | switched (?:to|majors?) | transferred | changed (?:my"
        r" )?(?:major|course)"
        r" | started (?:at|a|my) | enrolled | got into | accepted (?:to|into) | finished (?:my"
        r"|uni|school|the)",
    ),
    _matter(
        "home",
        r"lives? | (?<!for a )living (?:in|on|with|at|here|near) | lived"
        rf" | mov(?:e|ed|ing) (?:\w+ )?(?:in|to{_NO_TIME}|out|into|back|from|house|here) | flat"
        r" | apartment | house(?!work) | landlord | rent(?:ing)? | mortgage | home ?town | grew up"
        r" | relocat\w+ | (?:i'm|we're|i am|we are|still|based) (?:based )?in (?!(?:the|a|an|my"
        r"|bed|love|pain|bits"
        r"|trouble|tears|shock|two|time|no|charge|need|touch|case)\b)\w+ | (?:come|comes|i'm|am"
        r"|originally|are"
        r"|is) from | born and raised | two-bed | one-bed | studio | postcode | our place | my"
        r" place | the keys",
        rf"mov(?:ed|ing) (?:\w+ )?(?:in\b|to{_NO_TIME}|out|into|back|house|here)"
        r" | relocat\w+ | bought (?:a|an|the|our|my) (?:\w+ )?(?:flat|house|place"
        r"|apartment|home|cottage) | new (?:flat|house|place|apartment|home) | living (?:here|in"
        r" \w+) now"
        r" | (?:i'm|we're|i am|we are) (?:all )?(?:together )?in [\w ]+? (?:now|since) |"
        r" (?:carried|packed|shifted) everything | settled in"
        r" | no longer live | (?:don't|not) liv(?:e|ing) (?:\w+ )*?any\s?more | left (?:for|home)",
    ),
    _matter(
        "family",
        rf"(?:my|our|the|i have|we have|i've|have|got|own,?|had|\w+'s) (?:[\w'-]+"
        rf" ){{0,3}}?{RELATIONS}\b | lads"
        r" | of (?:my|our) own | twins | sons | daughters | siblings | brothers | sisters |"
        r" grandkids | stepson | stepdaughter",
    ),
    _matter(
        "taste",
        r"(?:don't |do not |can't |really |absolutely )?(?:lov(?:e|es|ed) | likes? | hates? |"
        r" hated | adores?"
        r" | enjoys? | prefers? | loathes?) | can'?t stand | cannot stand | favou?rite | fan of "
        r"| fond of"
        r" | obsessed with | mad about | crazy about | keen on | into (?!(?:the|a|my|it|his"
        r"|her)\b)\w+ | allergic to"
        r" | (?:don't|do not|never) (?:eat|drink|touch|do) | drinks? (?:tea|coffee|water)",
    ),
    _matter("fears", r"(?:scared|afraid|terrified|frightened) of | phobi[ac]"),
    _matter(
        "habit",
        r"every (?:single )?(?:other )?(?:day|week|month|year|morning|evening|night|weekend|mon"
        r"|tue|wed|thu|fri|sat|sun"
        r"|lunch|two|three)\w* | (?:mon|tues|wednes|thurs|fri|satur|sun)days | weekly | daily |"
        r" each (?:day"
        r"|week|month|morning|night) | (?:once|twice|three times|\d+ times) an? | weekdays |"
        r" weekends | nightly"
        r" | on (?:mon|tue|wed|thu|fri|sat|sun)\w*s | at (?:half )?\d+(?::\d+)?\s?(?:am|pm)? |"
        r" (?:mornings|evenings)",
    ),
    _matter(
        "plan",
        r"plan(?:s|ning)? | going to | gonna | hoping to | aiming | want to | booked |"
        r" flights? | trip"
        r" | gig | saving (?:up )?for | training for | next (?:week|month|year|spring|summer"
        r"|autumn|winter)"
        r" | signed up | i'll be | decided to | entered",
    ),
    _matter(
        "learning",
        r"learn\w* | lessons? | class(?:es)? | practis\w+ | practic\w+ | i play | plays? (?:the"
        r" )?\w+"
        r" | speaks? \w+ | fluent | started (?!to |my |the |a |work|at)\w+ing | took up | taken"
        r" up | joined",
    ),
    _matter(
        "belongings",
        r"bought | sold | got (?:rid of |myself )?an? (?:new |second[- ]hand |used )?(?:\w+"
        r" )?(?:car|bike|van|motorbike|boat|phone"
        r"|piano|guitar|camera|allotment|laptop|caravan) | i own | my (?:car|bike|van|boat"
        r"|allotment|garden)"
        r" | i drive",
    ),
)

# Words for an end or a change; shared words tell which fact it is about.
ENDS = re.compile(
    r"\b"
    + either(r"""
quit | stopp(?:ed|ing) | gave up | given up | giv(?:e|ing) up | no longer | any\s?more
cancel+ed | called off
(?:is|'s|are|was|got) off(?= *$| *[,.!]) | died | passed away
passed (?=on|last|this|yesterday) | put down | sold | lost
broke up | broken up | split up | divorc\w+ | separat\w+ | finished with | packed (?:it )?in
closed | dropped
got rid of | used to | ran away | went missing | gave (?:him|her|it|them) away | rehomed
expired | fell through
(?:didn't|did not) (?:happen|work out|get|go) | not (?:happening|going) | gone | wrapped up | shut
scrapped | is over
binned | jacked in | left (?!over|to|the (?:house|room)|home|it|early|me|hand) | died on | no more
(?:days|are|is|'s) (?:over|done|finished)(?= *$| *[,.!]) | retired | never mind | ended
broke down | written off | stolen | back on | let go
""")
    + r"\b"
)
TURNS = re.compile(
    r"\b"
    + either(r"""
changed | now(?= *$| *[,.!]| only| just) | only (?=on |mon|tue|wed|thu|fri|sat|sun|once|twice)
switch(?:ed|ing) | swapp(?:ed|ing) | replaced | instead | moved (?:it )?to | now it's
it's now | pushed back
went (?:up|down) | upgraded | rescheduled | pushed (?:it )?back | brought forward | is now
are now | renamed
turned out | turns out | not \w+ but | actually | correction | mixed (?:it )?up | i meant
got (?:it|that) wrong | my mistake
""")
    + r"\b"
)
NEGATED = re.compile(
    r"\b(?:don't|do not|doesn't|does not|didn't|not|never|no|can't|cannot|isn't|aren't|won't"
    r"|wasn't|hasn't"
    r"|haven't|without|hate|hates|hated)\b"
)

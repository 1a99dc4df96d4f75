"""Rules for instructions to a model in English."""

from __future__ import annotations

from .rules import DEVELOPERS, rule

_DROP = r"""\b(?: ignore | disregard | forget | override | bypass | discard | neglect | abandon
    | (?: start | begin | keep )_(?: ignoring | disregarding | bypassing )
    | (?: not | don't | stop | never | no_longer | not_have_to )_
      (?: (?: follow | obey )(?: ing )? | listen (?: ing )?_to | heed )
    | pay_no_attention_to | set_aside | throw_(?: out | away ) | erase | put_aside )"""
_THE = r"(?: _(?: about | all | any | every | each | of | the | your | these | those | such ) )"
_EARLIER = r"""(?: previous | prior | above | earlier | preceding | foregoing | existing | initial
    | original | former | system )"""
_ORDERS = r"""(?: instructions? | prompts? | rules | guidelines | directives? | commands
    | constraints | restrictions | programming | guardrails | safeguards | system_message )"""
_WORDS = r"(?: \w{2,14}_ ){0,2}?"
_MODEL = r"(?: ai | llms? | (?: large_ )?language_model | chat\W?bot | chatgpt | gpt | claude )"
_AGENT = rf"(?: {_MODEL} (?: _(?: agent | assistant | model | system | reader ) )? s? )"
_SECRETS = r"""(?: conversations? | chat_(?: history | log | transcript )s? | message_history
    | system_prompt | api\W?keys? | passwords?\b(?! _(?: polic | manager | reset ) ) | credentials
      | secrets | access_tokens?
    | (?: your | stored | all | user )_memor(?: y | ies ) | environment_variables | private_keys?
    | user (?: 's )?_(?: data | details | information | files | documents | emails | messages ) )"""
_PROMPT = r"""(?: system_(?: prompt | message | instructions? ) | pre\W?prompt
    | (?: initial | original | hidden | secret | internal | developer | base )_
      (?: prompt | instructions? | message | rules | directives? ) )"""
_FREE = r"""\b(?: do_anything_now | developer_mode | jailbreak_mode | opposite_mode
    | (?: unrestricted | unfiltered | uncensored | jailbroken | amoral )_
      (?: ai | assistant | model | chat\W?bot | version | mode | language | and )
    | (?: no | without (?: _any )? | free_(?: from | of ) (?: _all | _any )? | not_bound_by
        (?: _any )? ) _ (?: \w{2,14}_ )??
      (?: restrictions | guidelines | filters | content_polic | safety_ | censorship
        | (?: ethical | moral )_(?: limit | rule | guideline | constraint | code ) ) )"""

RULES = (
    rule(
        "override",
        "instruction, prompt, rules, guidelines, directive, commands, constraints, restrictions, "
        "programming, guardrail, safeguard, message, above, before this, prior to, up to this, "
        "you were, you have been, you had been, openai, anthropic, developer",
        rf"""{_DROP} {_THE}{{0,5}} _{_EARLIER} (?: _(?: and | or | system )(?: _{_EARLIER} )? )?
             _{_WORDS} {_ORDERS}\b
           | {_DROP} {_THE}{{0,4}} _{_WORDS} {_ORDERS} _(?: above | before_this | given_to_you
             | you_
             (?: were | have_(?: been | received | got ) | had | got | received | follow ) | so_far
               | preceding )\b
           | {_DROP} (?: _what )? _(?: the | your )_system_(?: prompt | message | instructions? )\b
           | {_DROP} {_THE}{{0,3}} _{_WORDS} {_ORDERS} _(?: (?: from | of | by | set_by
             | given_by )_
             (?: your_ )?(?: developers? | creators? | makers? | openai | anthropic | google )
             | that_(?: came | were_given | precede ) | before_(?: this | it )
             | (?: in | from )_(?: the | your )_system_(?: prompt | message ) )\b
           | \byour_(?: {_EARLIER}_ )?(?: instructions? | prompts? | directives? | guidelines )
             (?: _above )?_(?: are | is | were | have_been )_(?: now_ | all_ | hereby_ )?
             (?: void | null | cancel | obsolete | revoked | suspended | replaced | superseded
             | no_longer | invalid )
           | \b(?<! my\s )(?<! his\s )(?<! her\s )(?<! 's\s ){_EARLIER}_
             (?: instructions? | prompts? | directives? )_(?: are_ | is_ | have_been_ )?(?: now_
             | all_ | hereby_ )?(?: overridden | cancelled | canceled | void | revoked | suspended )
           | \b(?: none | nothing )_of_(?: the | your )_{_WORDS}{_ORDERS}~appl(?: y | ies )\b
           | \byou_(?: no_longer | don't | do_not )_(?: have | need )_to_(?: follow | obey )_~
             (?: \byour_ | openai | anthropic | developer | system_prompt )
           | {_DROP} (?: _all | _any | _each )? (?: _of )? _your _{_WORDS} {_ORDERS}\b
           | {_DROP} _(?: all | any | every )_(?: of_ )?(?: the_ | your_ )?{_ORDERS}
             (?= _(?: and | then | now )\b | \s?[.,;:!] | \s?$ )
           | \b(?: ignore | disregard | forget ) _(?: everything | anything | all | what )
             (?: _that )? _(?: (?: (?: is | was | came | written | said )_ )?
               (?: above | before_this | prior_to_this | up_to_this_point )
             | you_(?: were | have_been | had_been )_(?: told | instructed | taught | given ) )""",
    ),
    rule(
        "new orders",
        "instruction, prompt, directive, override, replace, supersede",
        r"""\byour_(?: new | updated | real | actual | true | only )_
            (?: instructions? | system_prompt | directives? )_(?: is | are )\b
          | ^\W{0,6}(?: new | updated | revised | important | urgent | system | secret | hidden
            | admin | administrator | developer )_(?: system_ )?
            (?: instructions? | prompt | directives? | override )\s?[:：]~
            \b(?: you | your | ignore | disregard | reply | respond | output | must | send )\b
          | \b(?: system | admin | administrator | developer | root | security | safety )_override_
            (?: code | accepted | activated | engaged | enabled | initiated | in_effect )\b
          | \bthe_(?: following | next | below )~(?: replace | override | supersede )s?_
            (?: all | any | your | every )_(?: \w{2,14}_ ){0,3}
            (?: instructions? | prompts? | rules | guidelines )\b""",
    ),
    rule(
        "claimed authority",
        "developer, administrator, admin, creator, operator, openai, anthropic, owner, maker",
        rf"""\b(?: i_am | i'm | this_is | (?: message | note | order | instruction )_from )_
             (?: the_ | your_ )?(?: system_ )?
             (?: administrator | admin | developers? | creators? | operators? | openai
               | anthropic )\b
             [^\n]{{0,40}}?
             \b(?: you_(?: must | will | shall | have_to )_(?: obey | comply | do_ | follow | ignore
                 | reveal | grant | execute | disregard )
               | obey_(?: me | my )\b | do_(?: as | what )_i_say | follow_my_(?: orders | commands )
               | (?: drop | ignore | disregard | bypass | lift )_(?: its | your | the
                 | all )_{_WORDS}
                 (?: {_ORDERS} | checks | polic ) )
           | \bas_your_(?: developer | creator | administrator | owner | operator | maker )_
             i_(?: now_ | hereby_ )?(?: order | command | instruct | authori[sz]e )_you\b""",
    ),
    rule(
        "addressed to a model",
        "read, process, summari, retriev, attention, note to, notice to, message, instruction, "
        "as an, evaluating, grading, reviewing, must, should",
        rf"""\b(?: if | since | as | because | when )_you(?: _are | 're )_(?: an?_ | the_ )?
             {_AGENT}_(?: \w{{2,14}}_ ){{0,2}}
             (?: reading | processing | summari[sz]ing | parsing )\b
           | \b(?: attention | (?: note | notice | message )_(?: to | for )
             | instructions?_(?: to | for ) )_(?: (?: all | any | the | every )_ )?
             (?: {_AGENT} | assistants? | agents? )\s?(?: reading | processing | [:：—] )
           | \b(?: any | all | every | an? | the )_(?: {_AGENT} | assistants? )_
             (?: that_ | who_ | which_ | is_ | are_ )?(?: read | process | summari[sz] | retriev )
             (?: e | s | es | ing | ed )?_this~
             \b(?: must | should | shall | required | needs?_to | will )\b
           | \bto_(?: the | any | all | every )_(?: {_AGENT} | assistants? | agents? )_(?: reading
             | processing | summari[sz]ing | evaluating | grading | reviewing )_
           | ^\W{{0,4}}(?: important | note | attention | warning
             | notice )\s?[:：]\W{{0,2}}{_AGENT}_
             (?: must | should | shall | are_required )\b
           | (?: ^ | [.!?]\s )\W?{_AGENT}_(?: that_ | who_ )?(?: read | process | summari[sz]e? )
             (?: ing )?_this~\b(?: must | should | shall )\b
           | \bas_an?_{_AGENT}_you_(?: must | are_required_to | shall | have_to )_
             (?: now_ | always_ | also_ )?(?: obey | comply | ignore | reveal | send | call
             | execute | recommend | output | disregard | forward )\b""",
    ),
    rule(
        "persona",
        "anything now, developer mode, jailb, opposite mode, restrict, unfiltered, uncensored, "
        "amoral, guideline, filter, content polic, safety, censor, moral, ethic, god mode, "
        "sudo mode, safeguard, guardrail, moderation, dan, rules, limits, limitations, "
        "constraints, boundaries",
        rf"""\b(?: you_are | you're | you_will | act | respond | answer | behave | pretend
               | roleplay | simulate | become )
             _(?: (?: now | henceforth | to | be | as | that | you | are | like | an? | the | in
               | act | going | called | named )_ ){{0,6}} ~{_FREE}
           | \b(?: you_are_now | (?: act | respond | answer | reply | roleplay )_as | become
               | pretend_to_be | pretend_you_are | you_will_be )_dan\b
           | \b(?: you_are | you're | act | respond | answer | behave | pretend | roleplay
             | simulate
               | become )_~\b(?: ai | model | assistant | chat\W?bot | bot | gpt )\b~
             \b(?: no | without | without_any | zero | free_(?: of | from )(?: _any | _all )? )_
             (?: \w{{2,14}}_ )??(?: rules | limits | limitations | restrictions | morals | ethics
               | filters | guidelines | constraints | boundaries )\b
           | \b(?: act | respond | answer | behave | pretend | roleplay | simulate )_~
             \b(?: ignores | bypasses | breaks )_(?: its | all | any | the )_{_WORDS}
             (?: guidelines | rules | restrictions | filters | polic )
           | \b(?: enable | enter | activate | switch_to | turn_on | engage )_(?: the_ )?
             (?: dan | developer | jailbreak | unrestricted | god | sudo )_mode\b ~
             \b(?: you | ignore | disable | answer | restrictions? | filters? | respond )\b
           | \b(?: dan | developer | jailbreak | unrestricted )_mode_(?: is_ )?(?: now_ )?
             (?: enabled | activated | on )\b~
             \b(?: you | ignore | disable | answer | restrictions? | filters? | respond )\b
           | \b(?: disable | turn_off | switch_off | deactivate | remove | drop | lift )_(?: all_ )?
             (?: of_ )?your_{_WORDS}(?: filters? | safeguards? | guardrails? | restrictions?
             | safety_\w | ethic | moderation )""",
        not_from=DEVELOPERS,
    ),
    rule(
        "reveal the prompt",
        "prompt, instruction, message, directive, rules, above",
        rf"""\b(?: reveal | show | print | output | repeat | display | tell_me | give_me | leak
             | dump | expose | write_out | recite | disclose | copy | paste | return | quote
             | summari[sz]e | translate | share | type_out | spell_out )_(?: \w{{1,12}}_ ){{0,4}}?
             (?: your | the_(?: full | entire | exact | complete | whole ) )_{_WORDS}{_PROMPT}\b
           | \b(?: repeat | print | output | recite | copy | paste | write_out | tell_me | show )_
             (?: me_ )?your_{_WORDS}(?: instructions? | prompt | rules )_(?: verbatim
               | word_for_word
             | exactly | in_full )\b
           | \b(?: contents? | text | words | wording | copy | version )_of_your_{_WORDS}{_PROMPT}\b
           | \b(?: repeat | print | output | copy | recite | write | return )_
             (?: (?: all | everything | the | of | text | words | lines? | prompt )_ ){{0,4}}
             (?: above | before_this )~(?: verbatim | word_for_word | starting_with | beginning_with
             | code_block | exactly )\b""",
    ),
    rule(
        "order on reading",
        "you read, you see, you process, you retriev, you recall, you receiv, you encounter, "
        "reading, you summari, you load, is recalled, is retrieved, is read, is loaded, reads, "
        "processes, summari, sees, retrieves, recalls",
        rf"""\b(?: (?: when (?: ever )? | once | as_soon_as | every_time | each_time | if | after )_
               you_(?: read | see | process | retrieve | recall | receive | encounter
               | summari[sz]e | load )
             | (?: up )?on_reading | after_reading
             | (?: when (?: ever )? | once | if )_(?: the | an? | any | your )_(?: {_AGENT}
               | assistant
               | agent )_(?: reads | processes | sees | retrieves | recalls | summari[sz]es )_this
             | when (?: ever )?_this_(?: memory | note | text | document | message | entry )_is_
               (?: recalled | retrieved | read | loaded | processed ) )\b ~
             (?: \b(?: call | invoke | use | run | trigger )_(?: the_ )?
                 \w{{2,40}}(?: \(\) | \W{{1,2}}(?: tool | function | api | endpoint | plugin )\b )
             | \b(?: execute | run | eval )_(?: the_ )?(?: following | command | code | script
                 | shell | curl | rm | sudo | bash | python )\b
             | \b(?: send | forward | e-?mail | post | upload | transmit | leak | copy | transfer
                 | reveal | output | disclose )~(?: {_SECRETS} | https?: | wallet | funds | bitcoin
                 | (?: the | your | entire )_(?: inbox | mailbox ) | all_(?: files | emails
                 | messages | contacts | data ) | attacker )
             | \b(?: delete | erase | wipe | drop )_(?: all | the | every | your )_~
                 \b(?: files? | memor(?: y | ies ) | data | database | records | tables? | logs )\b
             | \b(?: you_must | you_will | always )_(?: obey | comply | recommend | ignore )\b
             | \b(?: it | he | she )_(?: must | should | has_to )_(?: call | invoke | send | forward
                 | delete | obey | ignore | run | execute | reveal | recommend )\b )
           | \b(?: when | while )_(?: summari[sz]ing | reading | processing | translating )_
             (?: this | the )_\w{{2,14}}~\b(?: tell | convince | urge | persuade
               | instruct )_the_user\b
             """,
    ),
    rule(
        "exfiltration",
        "http, www., webhook, attacker, @",
        rf"""\b(?: send | forward | post | upload | e-?mail | transmit | leak | exfiltrate | copy
               | submit | deliver | append | encode | relay | report )\b~
             \b(?: the | this | our | all | entire | full | every | any | your | their | user's )_
             {_WORDS}{_SECRETS}~\b(?: to | at | into | via | in | as | with )\b ~
             (?: https?: | www\. | webhook | \battackers?\b | @(?: evil | attacker | hack ) )
           | \b(?: send | forward | e-?mail | leak | exfiltrate | transmit )_(?: the_ )?
             (?: user's | users' | all_user | all_stored | your_stored | system )_
             {_WORDS}(?: {_SECRETS} | prompt | data | memories )~\bto_[\w.+-]{{1,40}}@
           | \b(?: fetch | open | visit | load | request | get )_https?:\S{{1,200}}~(?: followed_by
             | with
             | containing | including | plus )_~{_SECRETS}
           | \b(?: make | issue | perform | send )_an?_(?: get | post | http )_(?: request_ )?to_
             https?:\S{{1,200}}~
             (?: conversation | history | prompt | password | secret | memor )""",
    ),
    rule(
        "concealment",
        "the user",
        r"""(?: ^ | [.,;:!?]\s? | \b(?: and | but | also | then | please | must | should )_ )
            (?: do_not | don't | never | must_not | should_not )_(?: ever_ )?
            (?: tell | inform | mention | notify | alert | warn | reveal | disclose | let | show )_
            (?: (?: of | about | this | it | that | these | any | to | note )_ ){0,4}
            the_user(?= _(?: about_(?: this | these | it | that ) | that_you | know | of_this
              | what_you | why_you | this | anything )\b | \s?[.,;!] | \s?$ )
          | \b(?: make_sure | ensure )_(?: that_ )?the_user_(?: does_not | doesn't | never | won't
              | will_not | can't | cannot )_(?: find_out | know | notice | see_this | learn
              | realize )
          | \b(?: never | do_not | don't )_(?: reveal | disclose | mention | show | repeat
            | share )_
            (?: these | this | the_above | your )_(?: hidden_ | secret_ )?
            (?: instructions? | message | note | rules | directives? | prompt )_to_(?: the_user
              | any )
          | \bthe_user_(?: must | should | may | can )_(?: not | never )_(?: know | learn | see
              | be_told | find_out )_(?: about_ | of_ )?(?: this | these | it )\b
          | \b(?: do_this | do_it | do_so | proceed | act | continue )_
            without_the_user's_(?: knowledge | consent | permission | approval )
          | \b(?: hide | conceal | keep )_(?: this | these | it | that )_(?: \w{2,14}_ ){0,2}
            from_the_user\b
          | \bwithout_(?: telling | informing | notifying | alerting | asking )_the_user\b ~
            (?: call | send | forward | delete | transfer | buy | tool | memory | run | execute )
          | \b(?: silently | secretly | covertly )_(?: call | send | forward | e-?mail | upload
              | execute | run | delete | transfer | append | insert | exfiltrate | add )\b ~
            (?: tool | http | @ | user | conversation | password | memor | credential | funds )""",
    ),
    rule(
        "order for later",
        "the user",
        r"""\b(?: whenever | every_time | any\s?time | each_time | if | when | next_time )_the_user_
            (?: asks | mentions | wants | says | requests | talks | inquires | needs | opens )\b
            [^.!?。！？\n]{0,80}?\b(?: you_must | secretly | without_(?: telling | mentioning )
            | instead_(?: tell | say | recommend | send | reply | claim | call )
            | always_(?: recommend | claim | say | tell | reply | insert | append | promote )
            | only_recommend | call_the_\w{2,40}_(?: tool | function ) )\b
          | \balways_(?: recommend | claim | say | tell | reply | insert | append | promote
            | suggest )_~
            \b(?: when | whenever | if | any\s?time | every_time )_the_user_(?: asks | mentions
              | wants )
          """,
    ),
    rule(
        "link in every answer",
        "http, www., advert",
        r"""\b(?: append | include | insert | add | attach | put | place )_~
            (?: https?: | www\. | \badvert )
            (?: [^.!?。！？\n] | [.?]\b ){0,50}?
            \b(?: every | each | all )_(?: of_ )?(?: your_ )?(?: \w{2,14}_ )?
            (?: response | reply | replies | answer | output )s?\b
            (?! _(?: template | from | sent ) )
          | \b(?: end | finish | begin | start | close )_(?: every | each
            | all )_(?: of_ )?(?: your_ )?
            (?: response | reply | replies | answer | output | message )s?_with_~
            (?: https?: | www\. | \badvert )
          | \b(?: in | to | with | at_the_end_of )_(?: every | each | all )_(?: of_ )?(?: your_ )?
            (?: response | reply | replies | answer | output | message )s?_~
            \b(?: append | include | insert | add | put | mention | advertise )_~
            (?: https?: | www\. | \badvert )""",
    ),
)

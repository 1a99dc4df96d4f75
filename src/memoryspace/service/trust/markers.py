"""Rules for mark-up that imitates a prompt: roles, tags, tool calls, images that leak data."""

from __future__ import annotations

from .rules import marker

# The start of a line that claims to come from the operator of the model, and what it may demand.
_CLAIM = r"""^\W{0,8}(?: system | root | (?: system\s )?admin(?: istrator )? | developers?
    | operator
      | openai | anthropic )
    (?: \s(?: prompt | message | notice | alert | instructions? | note | update | override | command
      | directive | announcement | team ) ){0,2}\W{0,3}[:\]>]\W{0,4}"""
_DEED = r"""(?: please\s )?(?: grant | approve | transfer | wipe | erase | execute | disable
    | delete
      | send | print | reveal | treat | hand\sover | give | unlock | skip | forward | export | dump
      | suspend | bypass | authori[sz]e )\s(?: out\s )?(?: the | all | every | any | this | full
        | your | my
      | logging | access )\b"""
_CLAIMED = r"""(?: the\s(?: user | caller | customer | guest | visitor | client )\s(?: is | has
    | was )
      (?: \s(?: now | been | an? | the | fully ) ){0,3}\s
      (?: admin | authori[sz]ed | verified | approved | trusted | root | granted | owner )
    | the\s(?: assistant | model | ai | agent | chatbot )\s(?: must | shall | should | will
      | has\sto
      | now | may\snow | is\snow )\b
    | (?: safety | security | content | access | identity | verification )\s
      (?: checks? | filters? | controls? | restrictions? | polic(?: y | ies ) | level | rules
        | limits )\s
      (?: (?: is | are | was | were | has | have | been | now )\s ){0,3}
      (?: suspended | disabled | off | lifted | raised | removed | deactivated | waived )
    | your\s(?: new\s )?(?: instructions | rules | guidelines | prompt | directives )\s
      (?: have | has | are | is | were )\b
    | all\s(?: earlier | previous | prior | your )\s(?: limits | rules | instructions | restrictions
      | policies | guidelines )
    | you\s(?: must | shall | will )\s(?: obey | comply | hand | give | grant | reveal | ignore
      | send | do
      | answer )\b
    | comply\swith\s | obey\s(?: the | this | me | my | all | every ) )"""

MARKERS = (
    marker(
        "prompt marker",
        "<| inst] sys>> system>> _turn> </ <system",
        r"""<\| (?: im_start | im_end | system | user | assistant | endoftext | start_header_id
              | end_header_id | eot_id | begin_of_text | endofprompt ) \|>
          | \[/?inst\] | <</?sys(?: tem )?>> | <(?: start | end )_of_turn>
          | </(?: memory | memories | long_term_memory | retrieved_knowledge | retrieved_memory
              | system | system[_-]prompt | system[_-]reminder | user_data )>
          | <system[_-](?: prompt | reminder )>""",
    ),
    marker(
        "role heading",
        "# system developer admin",
        r"""^\W{0,3}\#{2,4}\s?(?: system | instructions? | developer )
            (?: \s(?: prompt | message ) )?\s?:[^\n]{0,20}\n?[^\n]{0,60}?
            \b(?: you\s(?: are | must | will | should | have ) | ignore | disregard | obey )\b
          | ^\W{0,3}(?: system | developer )(?: \s(?: prompt | message ) )?\s?:\s?
            (?: you\s(?: are | must | will | should )\s | ignore | disregard | override
              | new\sinstructions? | from\snow\son
              | the\suser\s(?: has | is )\s(?: now\s )?(?: authori[sz]ed | admin | approved ) )
          | \[(?: system | admin | developer )(?: \s(?: message | prompt | override | note ) )?\]
            \s?:?\s?(?: override | you\s | ignore | disregard | (?: the\s )?user\sis | new\s )
          | \b(?: begin | start )\s(?: of\s )?(?: admin | system | developer | root )\s
            (?: message | prompt | instructions? | override )\b""",
    ),
    marker(
        "role claim",
        "system admin developer root operator openai anthropic",
        rf"""{_CLAIM}(?: {_DEED} | [^\n]{{0,60}}?\b{_CLAIMED} )""",
    ),
    marker(
        "tool call",
        '<tool_call <function <invoke action "arg "param',
        r"""<tool_calls?> | <function_calls?> | <invoke\sname\s?= | <function\s?=\s?\w
          | ^action\s?:\s?[\w.]{2,40}\s{1,3}action\sinput\s?:
          | \A\s?\{\s?"(?: name | tool | function )"\s?:\s?"[^"]{1,80}"\s?,\s?
            "(?: arguments | args | parameters )"\s?:""",
    ),
    marker(
        "image that leaks",
        "![",
        r"""!\[[^\]\n]{0,80}\]\(https?://[^)\s]{1,200}?[?&/=]
            (?: \{[^)\n]{0,80}\} | \[[^)\n]{0,80}\] | <[^)\n]{0,80}>
              | [^)\s]{0,40}(?: chat_history | system_prompt | conversation_ | user_secret ) )""",
    ),
)

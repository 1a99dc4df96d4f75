"""Signs that imitate a prompt's own: roles, tags, calls of tools, pictures that carry data away."""

from __future__ import annotations

from .rules import marker

MARKERS = (
    marker(
        "prompt marker",
        "<| inst] sys>> _turn> </ <system",
        r"""<\| (?: im_start | im_end | system | user | assistant | endoftext | start_header_id
              | end_header_id | eot_id | begin_of_text | endofprompt ) \|>
          | \[/?inst\] | <</?sys>> | <(?: start | end )_of_turn>
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

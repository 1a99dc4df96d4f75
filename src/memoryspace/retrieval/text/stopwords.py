"""Stop words: left out of queries, never out of documents.

A query of stop words alone keeps them: "to be or not to be" and "the who" can be found. Words that
are also names or have another meaning (will, may, can, us) are no stop words.
"""

from __future__ import annotations

from collections.abc import Collection

from .analysis import words_of_long
from .characters import IDEOGRAPH, kind_of
from .words import words

_ENGLISH = """
a about after again all also am an and any are arent as at be because been before being both but by
cant could couldnt did didnt do does doesnt doing dont down during each else few for from further
had hadnt has hasnt have havent having he her here hers herself him himself his how i if in into is
isnt it its itself just me more most my myself no nor not now of off on once only or other our ours
out over own please same shall she should shouldnt so some such than that the their theirs them
themselves then there these they this those through to too under until up upon very was wasnt we
were werent what when where whether which while who whom whose why with wont would wouldnt you your
yours yourself
"""
_GERMAN = "der das und ist nicht ein eine einen einem einer ich du er sie es wir ihr zu mit auf für"
_FRENCH = (
    "le la les un une des et est que qui dans pour pas sur je tu il elle nous vous ce cette du"
)
_SPANISH = "el los las una unos y es en que de por para con se lo su al del como pero"
_RUSSIAN = "и в не на я что он она с как это по но из у же за к о бы ли"
_CHINESE = "的 了 是 在 我 你 他 她 它 们 和 与 也 都 就 而 及 着 吗 呢 吧 啊 么 之 这 那 有 不 个"
_JAPANESE = "の は が を に へ と で も や か ね よ"

_LONG = 300  # characters

STOP_WORDS = frozenset(
    " ".join((_ENGLISH, _GERMAN, _FRENCH, _SPANISH, _RUSSIAN, _CHINESE, _JAPANESE)).split()
)


def query_words(text: str, stop_words: Collection[str] = STOP_WORDS) -> list[str]:
    """Return the words of a query, without stop words if any others are left."""
    found = words(text) if len(text) < _LONG else words_of_long(text)
    kept = [word for word in found if not _is_stop_word(word, stop_words)]
    return kept if kept else found


def _is_stop_word(word: str, stop_words: Collection[str]) -> bool:
    if word in stop_words:
        return True
    is_pair = len(word) == 2 and kind_of(word[0]) == IDEOGRAPH
    return is_pair and word[0] in stop_words and word[1] in stop_words

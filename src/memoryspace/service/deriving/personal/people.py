"""``People``: the people a message mentions, and whom "she" refers to."""

from __future__ import annotations

from collections.abc import Collection, Mapping


class People:
    """The people mentioned in one message.

    A person is written like the subject of a fact: "brother", "brother callum" or "callum".
    ``known`` maps names to people known from earlier messages. ``own`` holds the speaker's own
    names, in lower case.
    """

    def __init__(
        self, known: Mapping[str, str] | None = None, own: Collection[str] = frozenset()
    ) -> None:
        self.own = own
        self.last: str | None = None  # the person mentioned last
        self.mentioned: dict[str, None] = {}  # people mentioned, candidates for "he" and "she"
        self.topic = ""  # the subject of the last clause; empty for the speaker
        self.is_first = True  # until the first sentence has been searched for a name
        self.introduced: list[tuple[str, str]] = []  # new relations with names
        self._named = {} if known is None else dict(known)

    def mention(self, relation: str, name: str | None = None) -> str:
        """Return the person for a relation and an optional name, and mention them."""
        relation, name = relation.lower(), None if name is None else name.lower()
        self.last = self._who(relation, name)
        self._add_mention(self.last)
        if name is not None:
            if relation and name not in self._named:
                self.introduced.append((relation, name))
            self._named[name] = self.last
        return self.last

    def named(self, name: str) -> str | None:
        """Return the person with a name and mention them; ``None`` if the name is unknown."""
        found = self._named.get(name.lower())
        if found is not None:
            self.last = found
            self._add_mention(found)
        return found

    def mention_unknown(self) -> None:
        """Note that an unknown person may have been mentioned, so that "he" is ambiguous."""
        self.mentioned[""] = None

    @property
    def names(self) -> Collection[str]:
        """The known names, in lower case."""
        return self._named.keys()

    def _add_mention(self, who: str) -> None:
        """Mention a person; "brother callum" replaces "brother" once the name is known."""
        for known in [each for each in self.mentioned if who.startswith(f"{each} ")]:
            del self.mentioned[known]
        self.mentioned[who] = None

    def _who(self, relation: str, name: str | None) -> str:
        if name is not None:
            known = self._named.get(name, "")
            return known if " " in known else f"{relation} {name}".strip()
        same = {who for who in self._named.values() if who.startswith(f"{relation} ")}
        return same.pop() if len(same) == 1 else relation


def names_of(subjects: Collection[str]) -> dict[str, str]:
    """Return people by name, from stored subjects such as "user/brother callum"."""
    people = [subject.partition("/")[2] for subject in subjects]
    return {who.rpartition(" ")[2]: who for who in people if " " in who}

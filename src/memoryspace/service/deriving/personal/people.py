"""``People``: whom a message speaks of besides its speaker, and whom "she" means in it."""

from __future__ import annotations

from collections.abc import Collection, Mapping


class People:
    """The people of one message; those known by name from earlier ones are given.

    A person is written as the facts' subjects are: "brother", "brother callum" or "callum".
    ``own`` are the speaker's own names, in lower case.
    """

    def __init__(
        self, known: Mapping[str, str] | None = None, own: Collection[str] = frozenset()
    ) -> None:
        self.own = own
        self.last: str | None = None  # who was spoken of last
        self.here: dict[str, None] = {}  # who was spoken of: "he" and "she" may mean them
        self.topic = ""  # whom the last clause was about; the speaker if it is empty
        self.is_first = True  # until a name was looked for in a sentence
        self.met: list[tuple[str, str]] = []  # relations and names that were told
        self._named = {} if known is None else dict(known)

    def meet(self, relation: str, name: str | None = None) -> str:
        """Return the person that a relation and perhaps a name stand for; "she" is them now."""
        relation, name = relation.lower(), None if name is None else name.lower()
        self.last = self._who(relation, name)
        self._speak_of(self.last)
        if name is not None:
            if relation and name not in self._named:
                self.met.append((relation, name))
            self._named[name] = self.last
        return self.last

    def named(self, name: str) -> str | None:
        """Return the person with a name, if one is known; "she" is them now."""
        found = self._named.get(name.lower())
        if found is not None:
            self.last = found
            self._speak_of(found)
        return found

    def doubt(self) -> None:
        """Somebody may have been spoken of who is not known: "he" could be them."""
        self.here[""] = None

    @property
    def names(self) -> Collection[str]:
        """The names known, in lower case."""
        return self._named.keys()

    def _speak_of(self, who: str) -> None:
        """Add somebody; "brother" is "brother callum" as soon as his name is told."""
        for known in [each for each in self.here if who.startswith(f"{each} ")]:
            del self.here[known]
        self.here[who] = None

    def _who(self, relation: str, name: str | None) -> str:
        if name is not None:
            known = self._named.get(name, "")
            return known if " " in known else f"{relation} {name}".strip()
        same = {who for who in self._named.values() if who.startswith(f"{relation} ")}
        return same.pop() if len(same) == 1 else relation


def names_of(subjects: Collection[str]) -> dict[str, str]:
    """Return people by name, of stored subjects such as "user/brother callum"."""
    people = [subject.partition("/")[2] for subject in subjects]
    return {who.rpartition(" ")[2]: who for who in people if " " in who}

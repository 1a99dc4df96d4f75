"""temporary"""
from __future__ import annotations
from typing import NamedTuple
import numpy as np

class WordGains(NamedTuple):
    words: tuple
    rarities: np.ndarray
    gains: np.ndarray

def word_gains(index, text, keys):
    terms = [t for t in index._terms(text) if t.documents]
    scorer = index._scorer()
    slots = index._by_key.find(np.asarray(keys))
    known = np.flatnonzero(slots >= 0)
    found = slots[known].astype(np.uint32)
    table = np.zeros((len(keys), len(terms)))
    for n, t in enumerate(terms):
        table[known, n] = scorer.look_up([t], found, np.zeros(len(found)))
    return WordGains(tuple(t.word for t in terms), np.array([scorer.rarity(t) for t in terms]), table)

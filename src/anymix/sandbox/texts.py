"""Rules of the operators of texts: documents become words, and words become counts."""

from __future__ import annotations

from anymix.sandbox.node import Node, Rule
from anymix.sandbox.shapes import N, Refused, Shape, Size, W, numbers


def normalise_text(node: Node) -> list[Shape]:
    """Upper or lower case of each text; words to be removed would move the others."""
    if node.attributes.get("stopwords"):
        raise Refused("StringNormalizer that removes rows is not allowed")
    return [node.first.shape]


def tokenize(node: Node) -> list[Shape]:
    """Words of each text, filled up to the longest of the batch."""
    shape: list[Size] = list(node.first.shape)
    if numbers(shape) != 1 or shape[:1] != [N]:
        raise Refused("Tokenizer must have one text a row")
    return [(*shape, W)]


def count_words(node: Node) -> list[Shape]:
    """How often each listed word, or run of words, occurs in a row."""
    shape = node.first.shape
    if len(shape) != 2 or shape[0] != N:
        raise Refused("TfIdfVectorizer must have one list of words a row")
    if shape[1] == W and not node.attributes.get("pool_strings"):
        raise Refused("TfIdfVectorizer must list the words that it counts")
    places = node.attributes.get("ngram_indexes", ())
    if not len(places) or min(places) < 0 or max(places) >= 2**24:
        raise Refused("TfIdfVectorizer has places that are not there")
    return [(N, int(max(places)) + 1)]


TEXTS: dict[str, Rule] = {"StringNormalizer": normalise_text, "TfIdfVectorizer": count_words}
# How skl2onnx writes the cutting of text into words.
TOKENS: dict[str, Rule] = {"Tokenizer": tokenize}
# What may be done with words that stand there only to fill up: nothing but counting others.
OF_WORDS = {"Flatten", "Identity", "Squeeze", "TfIdfVectorizer"}

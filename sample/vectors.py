"""Vectors from words, without a model: hashed counts of words and of the letter groups inside them.

Two texts are close when they share words or parts of words. Nothing is learned and nothing is downloaded, so the
same text gives the same vector on every machine; in exchange, a question finds a passage only through words (or
inflections of words) that both contain. Two different words share a place in the vector now and then, which gives a
passage a small score that it has not earned.
"""

from __future__ import annotations

from collections.abc import Sequence

MODEL = "hashing-v1"
"""What stands in `embedding.model` of every point of the sample."""

_WORD_WEIGHT = 2.0
_WORD = r"(?u)\b\w\w+\b"


def embed(texts: Sequence[str], dimension: int) -> list[list[float]]:
    """Give each text a vector of `dimension` floats with length 1 (or all zeros, if no word is left).

    Whole words count twice as much as their groups of three to five letters, which let `store` find `stores`
    and one case of a Ukrainian noun find another. English stop words count as letter groups only.
    """
    if not texts:
        return []
    # Imported where it is needed: it takes seconds, and a load that finds everything in place embeds nothing.
    import numpy as np  # noqa: PLC0415
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, HashingVectorizer  # noqa: PLC0415

    words = HashingVectorizer(
        n_features=dimension, alternate_sign=True, norm="l2", token_pattern=_WORD,
        stop_words=list(ENGLISH_STOP_WORDS),
    )  # fmt: skip
    letters = HashingVectorizer(
        n_features=dimension, alternate_sign=True, norm="l2", analyzer="char_wb", ngram_range=(3, 5)
    )
    sums = _WORD_WEIGHT * words.transform(texts).toarray() + letters.transform(texts).toarray()
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    vectors = np.divide(sums, lengths, out=np.zeros_like(sums), where=lengths > 0)
    return [[round(float(value), 6) for value in vector] for vector in vectors]

"""Function words of English and German.

Questions are full of them and documents are not, so that BM25 would overrate them. German ones that
have a meaning in English, such as `die` and `man`, aren't here.
"""

from __future__ import annotations

FUNCTION_WORDS = frozenset({
    "a", "about", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be", "been", "but",
    "by", "can", "could", "did", "do", "does", "doing", "for", "from", "had", "has", "have", "he",
    "her", "him", "his", "how", "i", "if", "in", "into", "is", "it", "its", "just", "me", "my",
    "no", "not", "of", "on", "or", "our", "she", "should", "so", "some", "such", "than", "that",
    "the", "their", "them", "then", "there", "these", "they", "this", "those", "to", "us", "was",
    "we", "were", "what", "when", "where", "which", "who", "whom", "why", "will", "with", "would",
    "you", "your",
    "aber", "als", "auch", "auf", "aus", "bei", "das", "dass", "dein", "dem", "den", "der",
    "des", "dir", "du", "ein", "eine", "einem", "einen", "einer", "eines", "er", "es",
    "für", "ich", "ihr", "im", "ist", "ja", "kann", "mein", "mich", "mir", "mit",
    "nach", "nicht", "oder", "sein", "sich", "sie", "sind", "über", "um", "und", "uns", "von",
    "vom", "vor", "warum", "welche", "welcher", "wenn", "wer", "werden", "wie", "wieso",
    "wir", "wird", "wo", "zu", "zum", "zur",
})  # fmt: skip

"""The grammar of captions: sentence patterns, wordings, and the vocabulary."""

from collections.abc import Sequence

from xmodal.datasets.shapes.scene import COLOURS, DIRECTIONS, SHAPES
from xmodal.datasets.shapes.statements import Description

SPECIAL_TOKENS = ('[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]')
COUNT_WORDS = {2: 'two', 3: 'three'}

# The wordings of directions, sizes and textures; everything else has its name as its wording.
WORDINGS = {
    'left of': ('left of', 'to the left of'),
    'right of': ('right of', 'to the right of'),
    'above': ('above', 'over'),
    'below': ('below', 'under'),
    'small': ('small', 'little'),
    'large': ('large', 'big'),
    'solid': ('plain',),
    'striped': ('striped',),
    'dotted': ('dotted', 'spotted'),
}

# Sentences about two objects: the first is in the direction {r} of the second. A capital letter is
# the phrase with a definite article; {is} and {lies} agree with the first object.
PAIR_PATTERNS = (
    '{A} {is} {r} {B}',
    '{a} {r} {b}',
    'there {is} {a} {r} {B}',
    '{a} can be seen {r} {b}',
    '{A} {lies} {r} {B}',
    'a picture of {a} {r} {b}',
    '{r} {B} there {is} {a}',
)
# The first object is {r} of the second and {s} of the third.
FORK_PATTERNS = (
    '{A} {is} {r} {B} and {s} {C}',
    '{a} {r} {b} and {s} {c}',
    'there {is} {a} {r} {B} and {s} {C}',
    '{A} that {is} {r} {B} {lies} {s} {C}',
    '{s} {C} and {r} {B} {is} {a}',
)
# The first object is {r} of the second, which is {s} of the third.
CHAIN_PATTERNS = (
    '{A} {is} {r} {B} which {is_b} {s} {C}',
    '{a} {r} {b} that {is_b} {s} {c}',
    'there {is} {a} {r} {B} that {lies_b} {s} {C}',
)
# The first object is between the other two.
BETWEEN_PATTERNS = (
    '{A} {is} between {B} and {C}',
    'there {is} {a} between {b} and {c}',
    '{a} can be seen between {B} and {C}',
    'between {b} and {c} {lies} {a}',
)
# The first object is {r} of the second; the third phrase counts a group of objects.
COUNT_PATTERNS = (
    'there {is_c} {c} and {A} {is} {r} {B}',
    '{A} {is} {r} {B} and there {is_c} {c}',
    'a picture of {c} where {A} {is} {r} {B}',
)


def plural(shape: str) -> str:
    """The plural of a noun."""
    return f'{shape}es' if shape.endswith('s') else f'{shape}s'


def with_article(noun: str) -> str:
    """A noun phrase with its indefinite article."""
    return f'{"an" if noun[0] in "aeiou" else "a"} {noun}'


def fill_pattern(
    pattern: str,
    mentions: Sequence[Description],
    adjectives: Sequence[Sequence[str]],
    directions: Sequence[str],
) -> str:
    """The sentence of a pattern.

    Args:
        pattern: one of the patterns above.
        mentions: the descriptions of its first, second and third phrase.
        adjectives: of each mention, the words for size and texture, in the order of the phrase.
        directions: the words for its first and second relation.
    """
    parts = dict(zip('rs', directions, strict=False))
    names = zip('abc', ('', '_b', '_c'), mentions, adjectives, strict=False)
    for letter, suffix, mention, words in names:
        is_single = mention.count == 1
        noun = mention.shape if is_single else plural(mention.shape)
        phrase = ' '.join([*words, mention.colour, noun])
        if not is_single:
            phrase = f'{COUNT_WORDS[mention.count]} {phrase}'
        parts |= {
            letter: with_article(phrase) if is_single else phrase,
            letter.upper(): f'the {phrase}',
            f'is{suffix}': 'is' if is_single else 'are',
            f'lies{suffix}': 'lies' if is_single else 'lie',
        }
    return pattern.format(**parts)


def vocabulary() -> list[str]:
    """BERT's special tokens followed by all words of the grammar, in a fixed order."""
    patterns = (
        *PAIR_PATTERNS,
        *FORK_PATTERNS,
        *CHAIN_PATTERNS,
        *BETWEEN_PATTERNS,
        *COUNT_PATTERNS,
    )
    texts = [
        *(word for text in patterns for word in text.split() if not word.startswith('{')),
        *(word for wording in WORDINGS.values() for text in wording for word in text.split()),
        *('a', 'an', 'the', 'is', 'are', 'lies', 'lie'),
        *COUNT_WORDS.values(),
        *DIRECTIONS,
        *COLOURS,
        *(form for shape in SHAPES for form in (shape, plural(shape))),
    ]
    return [*SPECIAL_TOKENS, *sorted({word for text in texts for word in text.split()})]

"""Cleaning of captions."""

import re

_DELETED = re.compile(r"""[,.'!?"()*#:;~]""")
_SPACES = re.compile(r'\s+')


def clean_caption(text: str, max_words: int | None = 30) -> str:
    """ALBEF's rules: lower case, no punctuation, '-' and '/' become spaces, the first words only.

    Args:
        text: a caption as written by people or found on the web.
        max_words: number of words kept; None leaves the text unchanged, as LXMERT reads it.
    """
    # Web text may be cut off inside an emoji; no tokenizer accepts half a character.
    text = text.encode(errors='replace').decode()
    if max_words is None:
        return text
    text = _DELETED.sub('', text.lower()).replace('-', ' ').replace('/', ' ')
    text = text.replace('<person>', 'person')
    return ' '.join(_SPACES.sub(' ', text).strip().split(' ')[:max_words])

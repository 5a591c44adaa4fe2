"""Cleaning of captions."""

import re

_DELETED = re.compile(r"""[,.'!?"()*#:;~]""")
_SPACES = re.compile(r'\s+')


def clean_caption(text: str, max_words: int | None = 30) -> str:
    """ALBEF's rules: lower case, no punctuation, '-' and '/' as spaces, the first words only.

    Args:
        text: a caption as people or the web wrote it.
        max_words: words kept; None leaves the text as it is, as LXMERT reads it.
    """
    # Cut off in the middle of an emoji, as on the web, it is a text that no tokenizer takes.
    text = text.encode(errors='replace').decode()
    if max_words is None:
        return text
    text = _DELETED.sub('', text.lower()).replace('-', ' ').replace('/', ' ')
    text = text.replace('<person>', 'person')
    return ' '.join(_SPACES.sub(' ', text).strip().split(' ')[:max_words])

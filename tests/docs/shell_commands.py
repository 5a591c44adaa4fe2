"""The shell commands of the pages, as words."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

PAGES = [
    Path('README.md'),
    Path('CONTRIBUTING.md'),
    *sorted(Path('docs').rglob('*.md')),
    *sorted(Path('configs').rglob('*.md')),
    *sorted(Path('projects').rglob('*.md')),
]
FENCE = re.compile(r'^( *)```(\w+)\n(.*?)^\1```$', re.MULTILINE | re.DOTALL)
ENDS = {'&&', '||', ';', '|', '&'}


def fences(page: Path, *languages: str) -> list[str]:
    """The texts between ``` of some languages."""
    return [text for _, name, text in FENCE.findall(page.read_text()) if name in languages]


def commands(script: str) -> Iterator[list[str]]:
    """The commands of a script, without comments, variables, loops and redirections.

    Raises:
        ValueError: when a quotation does not end.
    """
    for line in re.sub(r'\s*\\\n\s*', ' ', script).splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars='&|;<>')
        lexer.whitespace_split, lexer.commenters = True, '#'
        command: list[str] = []
        words = list(lexer)
        for word, before in zip([*words, ';'], ['', *words], strict=True):
            if word in ENDS:
                yield from [bare] if (bare := _bare(command)) else []
                command = []
            elif '>' not in (word, before):
                command += _expand(word)


def _expand(word: str) -> list[str]:
    """The words of one with braces, ``{a,b}.txt``."""
    parts = re.fullmatch(r'([\w./-]*)\{([\w,]+)\}([\w./-]*)', word)
    return [parts[1] + part + parts[3] for part in parts[2].split(',')] if parts else [word]


def _bare(words: list[str]) -> list[str]:
    """A command without what the shell takes of it."""
    if words[:1] in (['for'], ['done']):
        return []
    while words and (words[0] == 'do' or re.match(r'\w+=', words[0])):
        words = words[1:]
    return words

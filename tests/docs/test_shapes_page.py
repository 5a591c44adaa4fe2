"""What docs/shapes.md says of the embedded world is what a build writes."""

import re
from pathlib import Path

from xmodal.datasets.shapes import grammar

PAGE = Path('docs/shapes.md').read_text()


def test_the_page_counts_patterns_and_words_and_no_special_tokens(tiny_world):
    patterns, captions, tasks = re.search(
        r'(\d+) sentence patterns and a vocabulary of (\d+) words \((\d+)\s', PAGE
    ).groups()
    sets = (
        getattr(grammar, f'{name}_PATTERNS') for name in 'PAIR FORK CHAIN BETWEEN COUNT'.split()
    )
    assert int(patterns) == sum(map(len, sets))
    words = [word for word in grammar.vocabulary() if not word.startswith('[')]
    assert int(captions) == len(words)
    file = (tiny_world / 'vocab.txt').read_text().split()
    assert int(tasks) == len([word for word in file if not word.startswith('[')])


def test_the_page_lists_all_that_a_build_writes(tiny_world):
    (tree,) = re.findall(r'```\ndata/shapes/\n(.*?)```', PAGE, re.DOTALL)
    listed = {re.match(r'[^/\s]+', line.strip()).group() for line in tree.splitlines()}
    written = {path.name for path in tiny_world.iterdir() if not path.name.startswith('.')}
    assert listed == written

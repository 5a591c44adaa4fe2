"""Sentences that repeat a table say what the table says."""

import re
from pathlib import Path

import torch

from xmodal.engine.launch import read_config
from xmodal.evaluation.retrieval import Gallery, RetrievalMetric
from xmodal.evaluation.retrieval_results import print_table

PLACES = Path('docs/acerpe_places.md').read_text()
TABLES = Path('docs/acerpe_tables.md').read_text()


def flowing(page):
    """The text of a page, on one line."""
    return ' '.join(Path(page).read_text().split())


def test_bindings_with_trained_anchors_are_those_of_the_table():
    (row,) = re.findall(
        r'^\| ACE-RPE, contrast of anchors \|(.*) ± .* \|.* \|$', PLACES, re.MULTILINE
    )
    binding = round(float(row.split('|')[-1]))
    assert f'fusion encoder gets {binding} % of the bindings' in flowing('docs/tasks/skills.md')
    assert f'gives a colour to the right shape in {binding} %' in flowing('README.md')


def test_the_seeds_that_would_decide_nlvr2_are_those_of_its_rows():
    section = TABLES.partition('## Table 2\n')[2].partition('\n## ')[0]
    seeds = re.findall(r': NLVR2 \|.*undecided: about (\d+) more', section)
    assert len(seeds) == 6
    least, most = re.search(r'and (\d+) to (\d+) more seeds', section).groups()
    assert (int(least), int(most)) == (min(map(int, seeds)), max(map(int, seeds)))


def test_the_heads_of_lxmerts_page_are_those_of_its_config():
    section = Path('docs/lxmert.md').read_text().partition('## The tasks')[2].partition('\n## ')[0]
    named = re.findall(r'^\| `(\w+Head)` \|', section, re.MULTILINE)
    heads = read_config('configs/lxmert/pretrain.py').model.heads
    assert named == [head.type for head in heads.values()]


def test_lxmerts_page_leads_to_the_step_that_was_measured_on_a_gpu():
    speed = Path('docs/lxmert.md').read_text().partition('\n## Speed')[2]
    assert '### Step of LXMERT on a GPU\n' in Path('docs/performance.md').read_text()
    assert 'performance.md#step-of-lxmert-on-a-gpu' in speed
    assert 'not been measured on a GPU' not in ' '.join(speed.split())


def test_the_tutorial_promises_what_the_test_prints(capsys):
    (promise,) = re.findall(r'The test prints (.*?)\.', flowing('docs/tutorials/own_images.md'))
    gallery = Gallery(torch.rand(12, 12), torch.arange(12))
    print_table(RetrievalMetric().measure(gallery), gallery, RetrievalMetric())
    printed = capsys.readouterr().out
    for text, word in {'R@1': 'recalls', 'image-to-text': 'directions', 'chance': 'chance'}.items():
        assert (text in printed) == (word in promise), word

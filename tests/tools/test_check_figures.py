"""Figures in the pages, their list, and what runs measured."""

import json
import re
from pathlib import Path

import pytest

from tools.analysis import check_figures
from tools.analysis.check_figures import add, compare_metrics, compare_pages, read_list, read_page
from xmodal.errors import ConfigError

PAGE = """# Results
| before a command | 1.0 |
```bash
python tools/train.py config.py
python tools/test.py config.py \\
    epoch_1.pth    # a minute
```
| test | R@1 | a key |
|---|---|---|
| ours | 59.7 ± 0.5 | 3 |
| a row of words | `k` | 2e-4 |

| test | R@5 | a key |
|---|---|---|
| ours | 90.7 % / 96.3 % | |
## Later
| in a section without a command | 2.0 |
"""
COMMAND = 'python tools/test.py config.py epoch_1.pth'


@pytest.fixture
def page(tmp_path):
    file = tmp_path / 'page.md'
    file.write_text(PAGE, encoding='utf-8')
    return file


def entry(page, columns, cells, commit='0fb298e'):
    return {
        'page': page.as_posix(),
        'section': 'Results',
        'command': COMMAND,
        'columns': columns,
        'commit': commit,
        'figures': {'ours': cells},
    }


def entries(page):
    return [
        entry(page, 'R@1 | a key', '59.7 ± 0.5 | 3'),
        entry(page, 'R@5 | a key', '90.7 % / 96.3 % |', commit='919fac5'),
    ]


def test_the_list_has_the_figures_of_the_pages_and_runs_agree():
    pages = [Path('README.md'), *sorted(Path('docs').rglob('*.md'))]
    listed = read_list(check_figures.LIST)
    rows = [row for page in pages for row in read_page(page)]
    assert len(rows) > 100
    assert compare_pages(listed, rows) == []
    assert compare_metrics(listed, Path())[0] == []
    assert check_figures.unknown_commits(listed) == []


def test_rows_with_figures_below_a_command_are_found(page):
    rows = list(read_page(page))
    assert [row[2:] for row in rows] == [
        (COMMAND, 'R@1 | a key', 'ours', '59.7 ± 0.5 | 3', 10),
        (COMMAND, 'R@5 | a key', 'ours', '90.7 % / 96.3 % |', 15),
    ]
    assert compare_pages(entries(page), rows) == []


def test_a_difference_with_its_sign_is_a_figure(tmp_path):
    page = tmp_path / 'page.md'
    table = '| row | difference | interval |\n|---|---|---|\n| ours | +1.20 | -0.10 … +2.50 |\n'
    page.write_text(f'```bash\n{COMMAND}\n```\n{table}', encoding='utf-8')
    assert [row.cells for row in read_page(page)] == ['+1.20 | -0.10 … +2.50']


@pytest.mark.parametrize(
    ('old', 'new', 'problems'),
    [
        ('59.7', '59.8', ['shows 59.8 ± 0.5 .*list has 59.7']),
        ('| ours | 59.7', '| theirs | 59.7', ["'ours' is listed and not", 'is not listed']),
        ('R@5', 'R@10', ["'ours' is listed and not", 'is not listed']),
        ('epoch_1', 'epoch_2', ['is listed and not'] * 2 + ['is not listed'] * 2),
        ('| a row of words | `k`', '| ours | 3', ['shows', 'twice']),
    ],
)
def test_each_difference_of_page_and_list_is_told(page, old, new, problems):
    page.write_text(PAGE.replace(old, new), encoding='utf-8')
    found = '\n'.join(compare_pages(entries(page), list(read_page(page))))
    assert len(found.splitlines()) == len(problems)
    for problem in problems:
        assert re.search(problem, found)


def test_cells_are_compared_with_as_many_runs_as_there_were_seeds(tmp_path, page):
    listed = [entry(page, 'R@1 / R@5 | R@10', '2.0 ± 1.0 / 5.0 ± 0.0 | 7.0 ± 2.0')]
    listed[0]['metrics'] = {
        'seeds': 3,
        'keys': [['a', 'b'], ['c']],
        'files': {'ours': 'seed_*/metrics.json'},
    }
    for seed, (a, c) in enumerate([(1, 5), (2, 7)]):
        write_metrics(tmp_path, seed, a=a, b=5, c=c)
    assert compare_metrics(listed, tmp_path) == ([], 0)
    write_metrics(tmp_path, 2, a=3, b=5, c=9)
    assert compare_metrics(listed, tmp_path) == ([], 2)
    write_metrics(tmp_path, 2, a=3, b=5, c=12)
    problems, _ = compare_metrics(listed, tmp_path)
    assert len(problems) == 1 and "'ours' has 7.0 ± 2.0" in problems[0]
    assert problems[0].endswith('seed_*/metrics.json 8.0 ± 3.6')


def write_metrics(root, seed, **metrics):
    folder = root / f'seed_{seed}'
    folder.mkdir(exist_ok=True)
    (folder / 'metrics.json').write_text(json.dumps(metrics))


def test_a_figure_that_is_measured_again_is_still_compared_with_its_runs(
    page, tmp_path, monkeypatch
):
    monkeypatch.setattr(check_figures, '_git', lambda *_: '7a2b3c4d (line) text')
    listed = [entry(page, 'R@1', '1.0')]
    listed[0]['figures']['theirs'] = '2.0'
    files = {name: f'{name}/seed_*/metrics.json' for name in ('ours', 'theirs')}
    listed[0]['metrics'] = {'seeds': 1, 'keys': [['a']], 'files': files}
    table = f'## Results\n```\n{COMMAND}\n```\n| test | R@1 |\n|---|---|\n| ours | 1.0 |\n'
    page.write_text(f'{table}| theirs | 2.5 |\n', encoding='utf-8')
    add(listed, list(read_page(page)))
    assert [(item['commit'], item['figures']) for item in listed] == [
        ('0fb298e', {'ours': '1.0'}),
        ('7a2b3c4', {'theirs': '2.5'}),
    ]
    for name, value in (('ours', 1.0), ('theirs', 2.5)):
        (tmp_path / name).mkdir()
        write_metrics(tmp_path / name, 0, a=value)
    assert compare_metrics(listed, tmp_path) == ([], 2)


def test_new_figures_are_added_and_the_others_keep_commit_and_metrics(page, monkeypatch):
    monkeypatch.setattr(check_figures, '_git', lambda *_: '7a2b3c4d (line) text')
    listed = entries(page)
    metrics = {'seeds': 3, 'keys': [['a']], 'files': {'ours': 'seed_*/metrics.json'}}
    listed[0]['metrics'] = metrics
    page.write_text(PAGE.replace('90.7', '91.0'), encoding='utf-8')
    add(listed, list(read_page(page)))
    assert [item['commit'] for item in listed] == ['0fb298e', '7a2b3c4']
    assert listed[0]['metrics'] == metrics and 'metrics' not in listed[1]
    assert listed[1]['figures'] == {'ours': '91.0 % / 96.3 % |'}
    monkeypatch.setattr(check_figures, '_git', lambda *_: '00000000 (line) text')
    with pytest.raises(ConfigError, match='is not committed yet'):
        add([], list(read_page(page)))


@pytest.mark.parametrize(
    ('content', 'message'),
    [
        ('- page: a.md\n', 'entry 1 has not the keys page, section, command'),
        ('- 3\n', 'entry 1 has not the keys'),
        (
            '- {page: a, section: b, command: c, columns: d, commit: 12, figures: {}}',
            'commit is 12, expected a short hash, in quotes',
        ),
    ],
)
def test_a_wrong_entry_is_named(tmp_path, content, message):
    file = tmp_path / 'figures.yml'
    file.write_text(content)
    with pytest.raises(ConfigError, match=message):
        read_list(file)

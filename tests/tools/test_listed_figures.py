"""Listed figures against what the commands of the pages print from published results."""

import pytest

from tools.analysis.check_figures import LIST, read_list
from xmodal.ablation.listed_figures import (
    compare_results,
    differences,
    print_again,
    read_rows,
    reads_results,
)
from xmodal.errors import ConfigError

PRINTED = """
|  | measured: TR@1 | measured: IR@1 | paper: TR |
| --- | ---: | ---: | ---: |
| None | 56.1 ± 1.2 | 45.7 ± 0.7 | – |
| APE, late | 56.3 ± 0.9 | 45.5 ± 0.8 | 94.5 |

**Against None, query by query, in points**

|  | figure | difference | verdict |
| --- | --- | ---: | --- |
| APE, late | TR@1 | +0.20 | undecided: about 16 more seeds would decide |
| APE, late | IR@1 | -0.19 | equivalent within 1 |

| family | table | plug-in | figure | difference | seeds |
| --- | --- | --- | --- | --- | --- |
| LXMERT | lxmert/plugins | APE | VQA | -0.22 | 3 |
"""


@pytest.fixture
def published():
    """An entry of the list whose archive is small; tests/docs/test_commands.py compares all."""
    return next(e for e in read_list(LIST) if e['command'].endswith('anchor_variants.tar.xz'))


def entry(columns, **figures):
    return {'columns': columns, 'figures': figures}


def test_a_wrong_figure_a_wrong_row_and_a_missing_file_are_told(published):
    first = dict(published)
    label, cells = next(iter(first['figures'].items()))
    first['figures'] = {label: cells.replace('77.3', '77.4', 1), 'another row': cells}
    missing = first | {'command': first['command'].replace('.tar.xz', '_2.tar.xz')}
    problems, compared = compare_results([first, missing])
    assert compared == 2 and len(problems) == 3
    assert f"'{label}' is listed with 77.4 ± 1.0 | 77.1" in problems[0]
    assert '77.3 ± 1.0 | 77.1' in problems[0].partition('and not')[2]
    assert "no row of the name 'another row'" in problems[1]
    assert 'anchor_variants_2.tar.xz does not exist' in problems[2]


@pytest.mark.parametrize(
    ('columns', 'label', 'cells', 'problem'),
    [
        ('measured: IR@1 | paper: TR', 'APE, late', '45.5 ± 0.8 | 94.5', ''),
        ('TR@1 / IR@1', 'None', '56.1 ± 1.2 / 45.7 ± 0.7', ''),
        ('TR@1 / IR@1', 'None', '56.1 ± 1.2 / 45.6 ± 0.7', 'and not 56.1 ± 1.2 / 45.7 ± 0.7'),
        ('IR@1', 'APE', '45.5 ± 0.8', "no row of the name 'APE'"),
        ('IR@1 | IR@5', 'None', '45.7 ± 0.7 | 1', 'no table with the columns IR@1 | IR@5'),
        ('difference', 'APE, late: IR@1', '-0.19', ''),
        ('difference', 'APE, late: TR@1', '-0.19', 'and not +0.20'),
        ('difference', 'APE, late', '-0.19', '2 rows of the name'),
        ('difference | seeds', 'lxmert/plugins, APE: VQA', '-0.22 | 3', ''),
    ],
)
def test_a_row_of_a_page_is_found_by_its_label(columns, label, cells, problem):
    found = differences(read_rows(PRINTED), entry(columns, **{label: cells}))
    assert len(found) == bool(problem)
    assert problem in ''.join(found)


def test_only_commands_that_read_published_results_are_run_again():
    assert reads_results('python tools/ablate.py t --dry-run --results docs/results/t.tar.xz')
    assert not reads_results('python tools/ablate.py t --results docs/results/t.tar.xz')
    assert not reads_results('python tools/ablate.py t --dry-run')
    assert not reads_results('python tools/test.py c.py --dry-run --results r')


def test_a_command_gets_the_words_of_the_shell_and_neither_own_runs_nor_a_file_to_draw(tmp_path):
    script = tmp_path / 'ablate.py'
    script.write_text('import sys\nprint(*sys.argv[1:], sep="\\n")\n')
    words = print_again(f'python {script} t --plot v.svg --root here --results r/{{a,b}}.tar.xz')
    *own, option, folder, form = words.split()
    assert own == ['t', '--root', 'here', '--results', 'r/a.tar.xz', 'r/b.tar.xz']
    assert (option, form) == ('--root', '--markdown') and folder != 'here'
    script.write_text('import sys\nprint("no such row", file=sys.stderr)\nsys.exit(2)\n')
    with pytest.raises(ConfigError, match='fails: no such row'):
        print_again(f'python {script} t')

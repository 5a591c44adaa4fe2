"""Every command in a page is one that its program takes; those that need nothing are run."""

import glob
import importlib
import re
import sys
from pathlib import Path

import pytest
from shell_commands import PAGES, commands, fences

from tools.analysis.check_figures import LIST, read_list
from xmodal.ablation import find_table
from xmodal.ablation.listed_figures import differences, read_rows
from xmodal.cli import COMMANDS
from xmodal.engine.errors import run_or_explain
from xmodal.engine.launch import read_config

# What the arguments of a launcher's script are of the tool that it starts.
LAUNCHERS = {
    'dist_train.sh': ('train.py', lambda config, processes, *rest: [config, *rest]),
    'dist_test.sh': ('test.py', lambda *words: [word for word in words if not word.isdecimal()]),
    'slurm_train.sh': ('train.py', lambda partition, job, config, folder, *rest: [config, *rest]),
    'slurm_test.sh': ('test.py', lambda partition, job, *rest: rest),
}
# Programs of others.
OTHERS = {
    *('cd', 'export', 'git', 'img2dataset', 'jupyter', 'ln', 'mkdir', 'mkdocs', 'pip'),
    *('pre-commit', 'sbatch', 'scontrol', 'source', 'tar', '['),
}
# Options with which a tool does nothing but print.
PRINTS = {'--help', '--dry-run', '--print-config'}
OURS = re.compile(r'(?:configs|projects|tools)/[^\s:]+')


def tool_of(words):
    """The tool that a command runs, as a path below tools/, with its arguments; None for others."""
    program, *arguments = (re.sub(r'^(\.\./)+tools/', 'tools/', word) for word in words)
    if program in ('python', 'python3') and arguments[0].startswith('tools/'):
        return arguments[0].removeprefix('tools/'), arguments[1:]
    if program == 'xmodal' and arguments[0] in COMMANDS:
        return COMMANDS[arguments[0]], arguments[1:]
    if program == 'torchrun' and '-m' in words:
        return tool_of(words[words.index('-m') + 1 :])
    if program in ('torchrun', 'srun'):
        *_, script = (index for index, word in enumerate(words) if word.startswith('tools/'))
        return words[script].removeprefix('tools/'), words[script + 1 :]
    if program.startswith('tools/') and (launcher := LAUNCHERS.get(Path(program).name)):
        return launcher[0], list(launcher[1](*arguments))
    return None


def is_known(words):
    """Whether a command that runs no tool is one of a known program."""
    program, *arguments = words
    if program == 'make':
        targets = re.findall(r'^(\w+):', Path('Makefile').read_text(), re.MULTILINE)
        return set(arguments) <= set(targets)
    if program in ('python', 'python3'):
        of_project = arguments[0].startswith('projects/') and Path(arguments[0]).is_file()
        known = (['-m', 'venv'], ['-m', 'pytest'])
        return arguments[0] == '-c' or arguments[:2] in known or of_project
    return program in OTHERS or words == ['xmodal', '--help']


def load(tool):
    return importlib.import_module('tools.' + tool.removesuffix('.py').replace('/', '.'))


def problem(words, own, monkeypatch, capsys):
    """What is wrong with a command; None if nothing is. ``own`` are files that a page writes."""
    absent = [
        name
        for word in words
        for name in OURS.findall(word)
        if '$' not in name and name not in own and not glob.glob(name)
    ]
    if absent:
        return f'{absent} do not exist'
    if (found := tool_of(words)) is None:
        return None if is_known(words) else 'an unknown program'
    tool, arguments = found
    module = load(tool)
    monkeypatch.setattr(sys, 'argv', [tool, *arguments])
    try:
        args = module.parse_args()
    except SystemExit as status:
        return None if status.code == 0 else capsys.readouterr().err
    if tool == 'ablate.py' and args.table not in {*own, 'tournament'}:
        find_table(args.table)
    return None


@pytest.mark.parametrize('page', PAGES, ids=str)
def test_the_commands_of_a_page_are_taken_by_their_programs(page, monkeypatch, capsys):
    own = set(re.findall(r'^# (configs/\w+\.py)', '\n'.join(fences(page, 'python')), re.MULTILINE))
    wrong = {}
    for script in fences(page, 'bash', 'sh'):
        for words in commands(script):
            if found := problem(words, own, monkeypatch, capsys):
                wrong[' '.join(words)] = found
    assert wrong == {}


SHORT = {
    ' '.join(words): words
    for page in PAGES
    for script in fences(page, 'bash', 'sh')
    for words in commands(script)
    if PRINTS & set(words)
}


@pytest.fixture(scope='module')
def listed():
    """Entries of the list of figures, with the words of their commands."""
    return [(words, entry) for entry in read_list(LIST) for words in commands(entry['command'])]


@pytest.mark.parametrize('line', SHORT)
def test_a_command_that_only_prints_is_run(line, listed, tmp_path, monkeypatch, capsys):
    tool, arguments = tool_of(SHORT[line])
    if '--results' in arguments:  # which are unpacked there
        arguments += ['--root', str(tmp_path)]
    if '--plot' in arguments:
        arguments[arguments.index('--plot') + 1] = str(tmp_path / 'plot.svg')
    monkeypatch.setattr(sys, 'argv', [tool, *arguments])
    try:
        run_or_explain(load(tool).main)
    except SystemExit as status:
        assert status.code == 0
    printed = capsys.readouterr().out
    assert printed
    rows = read_rows(printed)
    of_line = [entry for words, entry in listed if words == SHORT[line]]
    assert [found for entry in of_line for found in differences(rows, entry)] == []


def test_the_lists_that_the_readme_makes_are_those_of_the_pre_training():
    (words,) = (
        words
        for script in fences(Path('README.md'), 'bash')
        for words in commands(script)
        if 'tools/dataset_converters/img2dataset.py' in words
    )
    data = read_config('configs/acerpe/pretrain_4m.py').train_dataloader.dataset
    out, root = (words[words.index(option) + 1] for option in ('--out', '--root'))
    assert out in {data.data_root + file for file in data.ann_file}
    assert root == data.data_root + data.data_prefix.image


def test_fences_name_the_shell_as_bash():
    languages = {
        name
        for page in PAGES
        for name in re.findall(r'^ *```(\w+)$', page.read_text(), re.MULTILINE)
    }
    assert languages <= {'bash', 'bibtex', 'python', 'json', 'yaml'}


@pytest.mark.parametrize(
    'script, expected',
    [
        ('python a.py x # why\n\n# no\nmake test', [['python', 'a.py', 'x'], ['make', 'test']]),
        ('A=1 B="2 3" python \\\n   a.py --b "c d" > out', [['python', 'a.py', '--b', 'c d']]),
        ('for m in a b; do\n  run $m &&  go\ndone', [['run', '$m'], ['go']]),
        ('run --of a/{b,c}.txt "{d, e}"', [['run', '--of', 'a/b.txt', 'a/c.txt', '{d, e}']]),
        ('cd x; run "$(cat a | b)"', [['cd', 'x'], ['run', '$(cat a | b)']]),
    ],
)
def test_commands_are_read_as_the_shell_reads_them(script, expected):
    assert list(commands(script)) == expected


@pytest.mark.parametrize(
    'line, expected',
    [
        ('python tools/train.py CONFIG --amp --zzz', 'unrecognized arguments: --zzz'),
        ('xmodal test', 'the following arguments are required: config'),
        ('tools/dist_train.sh configs/none.py 8', "['configs/none.py'] do not exist"),
        ('tools/dist_train.sh CONFIG 8 --gpus 2', 'unrecognized arguments: --gpus'),
        ('python tools/none.py', "['tools/none.py'] do not exist"),
        ('make tests', 'an unknown program'),
        ('xmodal trian', 'an unknown program'),
        ('python tools/train.py CONFIG --resume', None),
        ('make test', None),
    ],
)
def test_wrong_commands_are_found(line, expected, monkeypatch, capsys):
    found = problem(line.split(), set(), monkeypatch, capsys)
    assert found == expected if expected is None else expected in found

"""The version is one, and the source is of the oldest Python that setup.cfg promises."""

import ast
from configparser import ConfigParser
from pathlib import Path

import pytest
import yaml

import xmodal

OLDEST = (3, 10)
FOLDERS = ('xmodal', 'tools', 'projects')
FILES = [file for folder in FOLDERS for file in sorted(Path(folder).rglob('*.py'))]
# What Python 3.11 to 3.13 added and a program might use, by module.
NEWER = {
    'asyncio': {'Runner', 'TaskGroup', 'timeout'},
    'collections.abc': {'Buffer'},
    'contextlib': {'chdir'},
    'copy': {'replace'},
    'datetime': {'UTC'},
    'enum': {'StrEnum', 'EnumCheck', 'ReprEnum', 'member', 'nonmember', 'verify'},
    'functools': {'Placeholder'},
    'hashlib': {'file_digest'},
    'inspect': {'markcoroutinefunction', 'getmembers_static'},
    'itertools': {'batched'},
    'math': {'cbrt', 'exp2', 'fma', 'sumprod'},
    'operator': {'call'},
    'sys': {'exception', 'monitoring', 'activate_stack_trampoline'},
    'tomllib': {''},
    'typing': {
        'LiteralString', 'Never', 'NotRequired', 'ReadOnly', 'Required', 'Self', 'TypeIs',
        'TypeVarTuple', 'Unpack', 'assert_never', 'assert_type', 'dataclass_transform', 'override',
        'reveal_type',
    },
    'warnings': {'deprecated'},
}  # fmt: skip
NEWER_BUILTINS = {'ExceptionGroup', 'BaseExceptionGroup', 'PythonFinalizationError'}
NEWER_METHODS = {'add_note', 'walk', 'full_match', 'from_uri'}  # of exceptions and of Path


def newer_names(text):
    """The names in a program that Python 3.10 does not have, and syntax that it cannot read."""
    tree = ast.parse(text, feature_version=OLDEST)
    imported = {a.asname or a.name: a.name for node in ast.walk(tree)
                if isinstance(node, ast.Import) for a in node.names}  # fmt: skip
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name == 'tomllib')
        elif isinstance(node, ast.ImportFrom):
            newer = NEWER.get(node.module, set())
            yield from (a.name for a in node.names if '' in newer or a.name in newer)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module = imported.get(node.value.id)
            if node.attr in NEWER.get(module, ()) or (not module and node.attr in NEWER_METHODS):
                yield f'{node.value.id}.{node.attr}'
        elif isinstance(node, ast.Name) and node.id in NEWER_BUILTINS:
            yield node.id


@pytest.mark.parametrize(
    'program, found',
    [
        ('import tomllib', ['tomllib']),
        ('from typing import Any, Self', ['Self']),
        ('import enum as e\nclass A(e.StrEnum): pass', ['e.StrEnum']),
        ('raise ExceptionGroup("a", [])', ['ExceptionGroup']),
        ('error.add_note("a")', ['error.add_note']),
        ('import os, ast\nos.walk("."), ast.walk(tree)', []),
    ],
)
def test_newer_names_are_found(program, found):
    assert list(newer_names(program)) == found


def test_newer_syntax_is_found():
    for program in ('try: pass\nexcept* ValueError: pass', 'type A = int', 'def f[T](): pass'):
        with pytest.raises(SyntaxError):
            list(newer_names(program))


def test_the_source_runs_on_the_oldest_python():
    setup = ConfigParser()
    setup.read('setup.cfg')
    assert setup['options']['python_requires'] == f'>={OLDEST[0]}.{OLDEST[1]}'
    found = {str(file): list(newer_names(file.read_text('utf-8'))) for file in FILES}
    assert {file: names for file, names in found.items() if names} == {}


def test_the_version_is_written_alike_everywhere():
    assert yaml.safe_load(Path('CITATION.cff').read_text())['version'] == xmodal.__version__
    changes = Path('CHANGELOG.md').read_text()
    newest = next(line for line in changes.splitlines() if line.startswith('## [0'))
    assert newest.startswith(f'## [{xmodal.__version__}]')


def test_continuous_integration_runs_on_each_python_that_is_promised():
    setup = ConfigParser()
    setup.read('setup.cfg')
    classifiers = setup['metadata']['classifiers'].splitlines()
    promised = [c.split(' :: ')[-1] for c in classifiers if ':: Python :: 3.' in c]
    job = yaml.safe_load(Path('.github/workflows/ci.yml').read_text())['jobs']['test']
    assert job['strategy']['matrix']['python'] == promised and promised[0] == '3.10'
    assert job['steps'][-1] == {'run': '.ci/run'}


def test_the_index_of_models_has_all_families():
    index = yaml.safe_load(Path('model-index.yml').read_text())['Import']
    assert sorted(index) == sorted(map(str, Path('configs').glob('*/metafile.yml')))

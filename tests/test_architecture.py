"""Imports run downwards only, there is no cycle, and files are short (docs/architecture.md).

Imports are read from the source, also those inside of functions; nothing is imported here.
"""

import ast
from collections import Counter
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MAX_LINES = 250

# The modules next to the packages: each may import the others.
FOUNDATION = {
    'arguments',
    'build_functions',
    'cache',
    'checkpoint_file',
    'config_text',
    'errors',
    'expansion',
    'fields',
    'files',
    'hashing',
    'lora',
    'packaged',
    'products',
    'registry',
    'version',
    'vocabulary',
    'weights',
}
MIDDLE = FOUNDATION | {'functional', 'structures', 'datasets', 'models'}

# What the modules of a package may import of xmodal, apart from their package.
PACKAGES = {
    **dict.fromkeys(FOUNDATION, FOUNDATION),
    '__main__': {'cli'},
    'cli': {'errors', 'packaged', 'version'},
    'functional': set(),
    'structures': {'errors'},
    'datasets': FOUNDATION | {'structures'},
    'models': FOUNDATION | {'functional', 'structures', 'datasets'},
    'evaluation': MIDDLE,
    'visualization': MIDDLE,
    'engine': MIDDLE | {'evaluation', 'visualization'},
    'converters': MIDDLE | {'engine'},
    'zoo': MIDDLE | {'engine', 'converters'},
    'search': MIDDLE | {'visualization'},
    'apis': MIDDLE | {'evaluation', 'visualization', 'engine', 'zoo', 'search'},
    'export': MIDDLE | {'evaluation', 'visualization', 'engine', 'zoo', 'apis'},
    'ablation': MIDDLE | {'evaluation', 'visualization', 'engine'},
    'benchmark': MIDDLE | {'evaluation', 'visualization', 'engine'},
    'soak': MIDDLE | {'evaluation', 'visualization', 'engine'},
}

# The same inside of xmodal/models.
PARTS = {
    'layers': set(),
    'losses': set(),
    'necks': {'layers'},
    'backbones': {'layers'},
    'fusion': {'layers', 'necks'},
    'heads': {'layers', 'losses', 'backbones', 'fusion'},
    'base': {'layers', 'necks', 'backbones'},
}
FAMILIES = {'albef', 'emkum', 'lxmert', 'sgraf', 'unimodal'}
ROOMS = {**PARTS, **dict.fromkeys(FAMILIES, set(PARTS))}


def find_modules(root):
    """The files of xmodal and tools, by the names of their modules."""
    modules = {}
    for package in ('xmodal', 'tools'):
        for file in sorted((root / package).rglob('*.py')):
            parts = file.relative_to(root).with_suffix('').parts
            modules['.'.join(parts[:-1] if parts[-1] == '__init__' else parts)] = file
    return modules


def read_imports(file, modules):
    """The modules of xmodal and tools that a file imports."""
    names = set()
    for node in ast.walk(ast.parse(file.read_text(encoding='utf-8'))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f'{file}:{node.lineno} is a relative import'
            full_names = {f'{node.module}.{alias.name}' for alias in node.names}
            names |= {name if name in modules else node.module for name in full_names}
    return {name for name in names if name.split('.')[0] in ('xmodal', 'tools')}


MODULES = find_modules(ROOT)


@cache
def all_imports():
    """The imports of each module; not read by the processes that run none of these tests."""
    return {name: read_imports(file, MODULES) for name, file in MODULES.items()}


def package_of(module):
    """'engine' of 'xmodal.engine.runner'; 'version' of xmodal itself."""
    parts = module.split('.')
    if parts[0] == 'tools':
        return 'tools'
    return parts[1] if len(parts) > 1 else 'version'


def room_of(module):
    """'heads' of 'xmodal.models.heads.itc'; None of xmodal.models itself and outside of it."""
    parts = module.split('.')
    return parts[2] if parts[:2] == ['xmodal', 'models'] and len(parts) > 2 else None


def violations(is_allowed):
    """The imports, module by module, that a rule on importer and imported does not allow."""
    return [
        f'{module} imports {imported}'
        for module, imports in all_imports().items()
        for imported in sorted(imports)
        if not is_allowed(module, imported)
    ]


def test_every_package_has_a_rule():
    packages = {package_of(module) for module in MODULES} - {'tools'}
    assert packages <= set(PACKAGES)
    assert {room_of(module) for module in MODULES} - {None} == set(ROOMS)


def test_packages_import_only_those_below_them():
    def is_allowed(module, imported):
        importer, target = package_of(module), package_of(imported)
        return importer in ('tools', target) or target in PACKAGES[importer]

    assert violations(is_allowed) == []


def test_rooms_of_the_models_import_only_those_below_them():
    def is_allowed(module, imported):
        importer = room_of(module)
        if importer is None or package_of(imported) != 'models':
            return True
        return room_of(imported) in ROOMS[importer] | {importer}

    assert violations(is_allowed) == []


@pytest.mark.parametrize('package', ['datasets', 'evaluation', 'visualization', 'engine'])
def test_it_knows_no_model_family(package):
    """A model is found by the registry; xmodal.models itself has the families, too."""

    def is_allowed(module, imported):
        if package_of(module) != package or package_of(imported) != 'models':
            return True
        return room_of(imported) in PARTS

    assert violations(is_allowed) == []


def test_nothing_in_the_package_imports_the_tools():
    def is_allowed(module, imported):
        return package_of(module) == 'tools' or package_of(imported) != 'tools'

    assert violations(is_allowed) == []


def test_no_modules_import_each_other_in_a_cycle():
    graph = {module: imports - {module} for module, imports in all_imports().items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(' imports '.join(reversed(error.args[1])))


def test_files_have_one_subject_and_at_most_250_lines():
    lengths = {
        str(file.relative_to(ROOT)): len(file.read_text(encoding='utf-8').splitlines())
        for file in MODULES.values()
    }
    assert {file: length for file, length in lengths.items() if length > MAX_LINES} == {}


def test_imports_are_read_from_the_source(tmp_path):
    (tmp_path / 'xmodal' / 'engine').mkdir(parents=True)
    (tmp_path / 'xmodal' / '__init__.py').touch()
    (tmp_path / 'xmodal' / 'files.py').touch()
    file = tmp_path / 'xmodal' / 'engine' / 'runner.py'
    file.write_text(
        'import os\nimport tools.train\nfrom xmodal import files, __version__\n'
        'def f():\n    from xmodal.models import AlbefPretrainer\n'
    )
    modules = find_modules(tmp_path)
    assert set(modules) == {'xmodal', 'xmodal.files', 'xmodal.engine.runner'}
    expected = {'tools.train', 'xmodal.files', 'xmodal', 'xmodal.models'}
    assert read_imports(file, modules) == expected


def test_test_files_have_names_of_their_own():
    # pytest cannot collect two of one name, and with an extra missing one of them may hide.
    counts = Counter(file.name for file in (ROOT / 'tests').rglob('test_*.py'))
    assert [name for name, count in counts.items() if count > 1] == []

"""What the package needs is declared, once for pip and once to be read."""

import ast
import sys
from configparser import ConfigParser
from importlib.metadata import packages_distributions
from pathlib import Path

SETUP = ConfigParser()
SETUP.read('setup.cfg')


def lines(text):
    """Requirements without comments."""
    return [line for line in text.split('\n') if line.strip() and not line.startswith('#')]


def declared(*keys):
    return [line for section, key in keys for line in lines(SETUP[section][key])]


def test_requirements_txt_has_what_setup_cfg_declares_for_use_and_tests():
    expected = declared(('options', 'install_requires'), ('options.extras_require', 'test'))
    assert lines(Path('requirements.txt').read_text()) == expected


def test_users_do_not_install_pytest():
    assert not any('pytest' in line for line in declared(('options', 'install_requires')))


def imported(folder):
    """The packages that Python files import."""
    for file in Path(folder).rglob('*.py'):
        for node in ast.walk(ast.parse(file.read_text('utf-8'))):
            if isinstance(node, ast.Import):
                yield from (name.name.split('.')[0] for name in node.names)
            elif isinstance(node, ast.ImportFrom) and not node.level:
                yield node.module.split('.')[0]


def test_every_package_that_is_imported_is_declared():
    # The extras figures, onnx, gpu, lora, search, demo and parquet.
    optional = {
        'umap',
        'onnxscript',
        'onnxruntime',
        'triton',
        'peft',
        'faiss',
        'fastapi',
        'uvicorn',
        'pyarrow',
    }
    packages = {*imported('xmodal'), *imported('tools')} - sys.stdlib_module_names - optional
    known = {line.split('>')[0] for line in declared(('options', 'install_requires'))}
    distributions = packages_distributions()
    for package in packages - {'xmodal', 'tools'}:
        assert known & {name.lower() for name in distributions[package]}, package

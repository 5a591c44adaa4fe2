"""Every tool with wrong files, options and values of options, in this process."""

import argparse
import importlib
import io
import sys
from pathlib import Path

import pyarrow
import pytest
import torch
from damages import other_files
from mmengine.config import Config
from trials import require_right

from xmodal.engine.errors import run_or_explain

pyarrow.array([1])  # reserves a gigabyte of addresses, once

RECORDS = b'[{"image": "a.jpg", "caption": "a dog"}]'
FILES = {
    **dict(other_files(RECORDS)),
    'UTF-16': RECORDS.decode().encode('utf-16'),
    'Latin-1': b'["caf\xe9"]',
    'cut off': RECORDS[:-5],
    'null bytes': bytes(100),
    'all bytes': bytes(range(256)),
    'nested lists': b'[' * 100_000,
    'a list of numbers': b'[1, 2]',
    'a list of null': b'[null]',
    'a list of empty objects': b'[{}]',
    'an object': b'{"a": 1}',
    'numbers for lists': b'{"annotations": 3, "images": "x", "questions": {}, "categories": [1]}',
    'lists of numbers': b'{"annotations": [3], "images": [[1]], "questions": [null]}',
    'a number': b'3',
    'null': b'null',
    'a text': b'"a dog"',
}
CHECKPOINTS = {
    'a list': [1],
    'meta is a list': {'state_dict': {}, 'meta': [1]},
    'weights of another model': {'state_dict': {'fc.weight': torch.zeros(3)}, 'meta': {}},
    'nothing': {},
    'a number for a model': {'model': 3},
    'three empty models': {'model': [{}, {}, {}]},
    'three other models': {'model': [{'fc.weight': 3}, {'embed.weight': 'x'}, {'a': 1}]},
    'a list of weights': {'state_dict': [1]},
    'texts for weights': {'state_dict': {'a': 'b'}},
    'numbers for names': {1: 2},
    'one tensor': torch.zeros(3),
    'a part of data2vec': {'model': {'modality_encoders.IMAGE.x': torch.zeros(2)}},
    'a part of LXMERT': {'bert.embeddings.word_embeddings.weight': torch.zeros(2, 2)},
}

ALBEF, LXMERT = 'configs/acerpe/pretrain_shapes.py', 'configs/lxmert/pretrain_shapes.py'
SGRAF = 'configs/temde/saf_temde_shapes.py'
# The command lines that read a file; {folder} has the file under the name that is given, too.
READERS = [
    ('dataset_converters.albef_paths', '{file} --out {out} --root {folder}', ''),
    ('dataset_converters.build_index', '{file}', ''),
    ('dataset_converters.build_vocab', '{file} --out {out} --least 1', ''),
    ('dataset_converters.caption_questions', '{file} --out {out}', ''),
    ('dataset_converters.csv_to_albef', '{file} --root {folder} --out {out}', ''),
    ('dataset_converters.flickr8k', '{folder} --out {out}', 'Flickr8k.token.txt'),
    ('dataset_converters.img2dataset', '{folder} --root {folder} --out {out}', '0_stats.json'),
    ('dataset_converters.parquet_to_albef', '{file} --root {folder} --out {out}', ''),
    ('dataset_converters.karpathy', '{file} --split val --root {folder} --out {out}', ''),
    ('dataset_converters.lxmert_answers', '{file} --out {out}', ''),
    ('dataset_converters.nlvr_boxes', '{file} --out {out}', ''),
    ('dataset_converters.nlvr_statements', '{file} --out {out}', ''),
    ('dataset_converters.regions', 'tsv {file} --out {out}', ''),
    ('dataset_converters.regions', 'precomp {folder} --split x --out {out}', 'x_ims.npy'),
    ('dataset_converters.visual_genome', '{folder} --root . --out {out}', 'image_data.json'),
    (
        'dataset_converters.visual_genome',
        '{folder} --root . --out {out} --exclude-coco {file}',
        'image_data.json',
    ),
    ('dataset_converters.vqa_answers', '{file} --out {out}', ''),
    ('dataset_converters.vqa_split', '{good} {good} {file} --out {out}', ''),
    ('dataset_converters.vqa_split', '{file} {good} {good} --out {out}', ''),
    ('analysis.evaluate_vqa', '{good} {file}', ''),
    ('analysis.ensemble', f'{{file}} --config {ALBEF}', ''),
    ('analysis.ensemble', '{good} --config {file}', ''),
    ('analysis.get_params', '{file}', ''),
    ('analysis.get_flops', '{file}', ''),
    ('analysis.benchmark_lxmert', '{file}', ''),
    ('analysis.benchmark_pretrain', '{file}', ''),
    ('analysis.benchmark_scaling', 'sizes {file}', ''),
    ('analysis.benchmark_scaling', 'sketches {file}', ''),
    ('analysis.report', '{folder}', 'epoch_1.pth'),
    ('ablate', '{file} --dry-run', ''),
    ('train', '{file} --work-dir {out}', ''),
    ('test', f'{ALBEF} {{out}}.pth', ''),
]
CONVERTERS = [
    ('model_converters.albef', f'{{file}} {{out}} --config {ALBEF}'),
    ('model_converters.lxmert', f'{{file}} {{out}} --config {LXMERT}'),
    ('model_converters.lxmert', '{file} {out} --export transformers'),
    ('model_converters.sgraf', f'{{file}} {{out}} --config {SGRAF}'),
    ('model_converters.data2vec2', '{file} {out}'),
]
TOOLS = sorted(
    '.'.join(path.relative_to('tools').with_suffix('').parts)
    for path in Path('tools').rglob('*.py')
    if path.stem != '__init__'
)
# One line of text is a caption, whatever it says.
CAPTIONS = {'a number', 'null', 'a text'}


@pytest.fixture
def tool(monkeypatch):
    """Calls a tool as its command line does."""

    def call(name, *arguments):
        module = importlib.import_module(f'tools.{name}')
        monkeypatch.setattr(sys, 'argv', [name, *map(str, arguments)])
        monkeypatch.setattr(sys, 'stdout', io.StringIO())
        run_or_explain(module.main)

    return call


@pytest.fixture
def folder(tmp_path):
    """A folder with a file of no tool's layout, and what some tools look for beside theirs."""
    (tmp_path / 'good.json').write_text('{"1": "x"}')
    (tmp_path / 'images').mkdir()
    (tmp_path / 'split_train.txt').write_text('a.jpg')
    (tmp_path / 'config.py').write_text("test_cfg = dict(type='RetrievalLoop')")
    (tmp_path / 'x_caps.txt').write_text('a dog\n')
    return tmp_path


def run_trials(trials, tool, name, arguments, file, copy, contents):
    """Trials of a tool with files, none of which it may take, or leave an output of."""
    folder, tried = file.parent, []
    places = dict(file=file, folder=folder, good=folder / 'good.json', out=folder / 'out')
    line = arguments.format(**places).split()
    for kind, write in contents.items():
        write(file)
        if copy:
            write(folder / copy)
        given = f'{name} {arguments}: {kind}'
        names = [file.name, copy or file.name, folder / 'out']
        is_right = name.endswith('build_vocab') and kind in CAPTIONS
        tried.append(trials.run(name, given, lambda: tool(name, *line), names, is_right))
        assert (folder / 'out').is_file() == is_right, given
        (folder / 'out').unlink(missing_ok=True) if is_right else None
    require_right(tried)


@pytest.mark.parametrize(('name', 'arguments', 'copy'), READERS)
def test_a_file_of_another_layout_is_named(trials, tool, folder, name, arguments, copy):
    contents = {
        kind: lambda path, content=content: path.write_bytes(content)
        for kind, content in FILES.items()
    }
    run_trials(trials, tool, name, arguments, folder / 'mine.json', copy, contents)


@pytest.mark.parametrize(('name', 'arguments'), CONVERTERS)
def test_a_checkpoint_of_another_model_is_named(trials, tool, folder, tiny_world, name, arguments):
    for config in (ALBEF, LXMERT, SGRAF):
        if config in arguments:
            (folder / 'model.py').write_text(
                Config.fromfile(config).pretty_text.replace('data/shapes', str(tiny_world))
            )
            arguments = arguments.replace(config, str(folder / 'model.py'))
    contents = {
        kind: lambda path, content=content: torch.save(content, path)
        for kind, content in CHECKPOINTS.items()
    }
    contents |= {
        kind: lambda path, content=content: path.write_bytes(content)
        for kind, content in FILES.items()
    }
    run_trials(trials, tool, name, arguments, folder / 'mine.pth', '', contents)


class Parser(Exception):
    """The parser of a tool."""


def options_of(name, monkeypatch):
    """The parser's options of a tool."""

    def stop(self, *_):
        raise Parser(self)

    with monkeypatch.context() as patch:
        patch.setattr(argparse.ArgumentParser, 'parse_args', stop)
        module = importlib.import_module(f'tools.{name}')
        with pytest.raises(Parser) as caught:
            getattr(module, 'parse_args', module.main)()
    parsers = [caught.value.args[0]]
    for action in parsers[0]._actions:
        if isinstance(action, argparse._SubParsersAction):
            parsers += action.choices.values()
    return [(parser, action) for parser in parsers for action in parser._actions]


@pytest.mark.parametrize('name', TOOLS)
def test_a_wrong_option_or_number_is_named(trials, tool, monkeypatch, name):
    tried = []
    for wrong in (['--no-such-option'], ['a'] * 9):
        tried.append(trials.run(name, ' '.join(wrong), lambda w=wrong: tool(name, *w), ['a', 'no']))
    for parser, action in options_of(name, monkeypatch):
        if action.type is None or not action.option_strings or action.type in (Path, int, str):
            continue
        option = action.option_strings[0]
        for value in ('x', '-1', '', 'nan', '1e999', '0x', '١'):
            given = [option] + [value] * (action.nargs if type(action.nargs) is int else 1)
            if is_taken(action.type, value):
                continue

            def call(given=given, parser=parser):
                parser.parse_args([f'{given[0]}={given[1]}', *given[2:]])

            tried.append(trials.run(name, f'{name} {given}', call, [option]))
    require_right(tried)


def is_taken(kind, value):
    """Whether a number or a pattern is a right one, by what the option's help asks for."""
    if kind.__name__ == 'whole':
        return value == '١'  # a digit, as Python's int() reads it
    return kind.__name__ == 'expression'

"""Counts the parameters of a model by part.

Usage::

    python tools/analysis/get_params.py configs/acerpe/pretrain_4m.py
    python tools/analysis/get_params.py configs/acerpe/pretrain_4m.py --image-size 384
    python tools/analysis/get_params.py configs/temde/saf_temde_f30k.py --vocab-size 8481
    python tools/analysis/get_params.py configs/lxmert/gqa.py --answers 1842

Nothing is downloaded and no weights are read. Teachers (momentum or frozen) are not counted. Shared
parameters are counted once, in the first part that has them.
"""

import argparse
import json
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import torch
from mmengine.config import ConfigDict
from rich.console import Console
from torch import nn

from xmodal.benchmark import (
    make_table,
    write_placeholder_vocabulary,
    write_placeholder_words,
)
from xmodal.config_text import sections
from xmodal.engine.command_line import at_least
from xmodal.engine.errors import run_or_explain
from xmodal.engine.launch import read_config
from xmodal.registry import MODELS, register_all

TEACHER = 'teacher'
# An encoder is counted with its projection, and the fusion encoder with the matrices of the
# position, as in the 53.3M of ACE-RPE.
COUNTED_WITH = {
    'text_proj': 'text_encoder',
    'image_proj': 'image_encoder',
    'position': 'fusion',
}
ROBERTA = dict(vocab_size=50265, type_vocab_size=1)  # where it differs from BERT-base


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('config', help='config file')
    parser.add_argument(
        '--image-size', type=at_least(1), help='in pixels; default: that of the config'
    )
    parser.add_argument(
        '--vocab-size',
        type=at_least(1),
        help='number of words; default: that of the vocabulary file',
    )
    parser.add_argument(
        '--answers',
        type=at_least(1),
        help='number of answers (default: those of the answer list; without this file the 9500 of '
        'LXMERT)',
    )
    return parser.parse_args()


def replace_files(model: ConfigDict, args: argparse.Namespace, folder: Path) -> Iterator[str]:
    """Replaces missing files of a config by placeholders in ``folder``.

    Yields:
        A note for each placeholder that affects the number of parameters.

    Raises:
        FileNotFoundError: if a number of parameters depends on a missing file.
    """
    tokenizer = model.get('data_preprocessor', {}).get('tokenizer', {})
    is_roberta = tokenizer.get('family') == 'roberta'
    if 'vocabulary' in tokenizer:
        if args.vocab_size:
            tokenizer.vocabulary = write_placeholder_words(folder, args.vocab_size)
        elif not Path(tokenizer.vocabulary).is_file():
            raise FileNotFoundError(f'{tokenizer.vocabulary} does not exist: pass --vocab-size')
    elif tokenizer:  # the size of the vocabulary is that of the text encoder
        model.data_preprocessor.tokenizer = dict(pretrained=write_placeholder_vocabulary(folder))
    text = model.get('backbone', model).get('text_encoder', {})
    pretrained = text.get('config')
    if isinstance(pretrained, str) and not Path(pretrained).is_dir():
        if not is_roberta:
            raise FileNotFoundError(f'text_encoder.config={pretrained} does not exist: download it')
        text.config = ROBERTA
        yield f'the sizes of RoBERTa-base, because {pretrained} does not exist'
    for _, section in sections(model):
        file = section.get('answer_list')
        if isinstance(file, str) and (args.answers or not Path(file).is_file()):
            answers = args.answers or 9500
            section.answer_list = str(folder / 'answers.json')
            Path(section.answer_list).write_text(
                json.dumps([f'answer {n}' for n in range(answers)])
            )
            if section is not model:  # a model that generates answers has no parameters for them
                yield f'{answers} answers instead of those of {file}'


def count_parameters(model: nn.Module) -> Counter[str]:
    """Counts the parameters by part, without teachers."""
    counts: Counter[str] = Counter()
    for name, parameter in model.named_parameters():
        part = name.removeprefix('backbone.').split('.')[0]
        if part != TEACHER:
            counts[COUNTED_WITH.get(part, part)] += parameter.numel()
    return counts


def main() -> None:
    """Prints the table."""
    args = parse_args()
    config = read_config(args.config, 'model').model
    if args.image_size:
        config.get('backbone', config).image_encoder.image_size = args.image_size
    register_all()
    with tempfile.TemporaryDirectory() as folder:
        notes = list(replace_files(config, args, Path(folder)))
        with torch.device('meta'):  # allocates nothing
            counts = count_parameters(MODELS.build(config))
    table = make_table('', 'part', 'millions')
    heads = counts.pop('heads', 0)
    for name, value in counts.items():
        table.add_row(name.replace('_', ' ').replace('fusion', 'fusion encoder'), millions(value))
    table.add_section()
    if heads:
        table.add_row('without heads', millions(counts.total()))
        table.add_row('heads', millions(heads))
        table.add_section()
    table.add_row('total', millions(counts.total() + heads))
    print(f'Parameters of {args.config}', *notes, sep='\n')
    Console().print(table)


def millions(count: int) -> str:
    """Formats a count in millions."""
    return f'{count / 1e6:.1f}'


if __name__ == '__main__':
    run_or_explain(main)

"""Counts a model's parameters, part by part.

Usage::

    python tools/analysis/get_params.py configs/acerpe/pretrain_4m.py
    python tools/analysis/get_params.py configs/acerpe/pretrain_4m.py --image-size 384
    python tools/analysis/get_params.py configs/temde/saf_temde_f30k.py --vocab-size 8481
    python tools/analysis/get_params.py configs/lxmert/gqa.py --answers 1842

Nothing is downloaded and no weights are read. Teachers (a momentum teacher, a
frozen model) are apart. What shares parameters has them once, in the part that comes first.
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
from rich.table import Table
from torch import nn

from xmodal.engine.errors import run_or_explain
from xmodal.engine.launch import read_config
from xmodal.registry import MODELS, register_all
from xmodal.vocabulary import SPECIAL_WORDS, Vocabulary

TEACHERS = ('teacher', 'teacher')
# An encoder counts with its projection to the contrastive space, and ACE-RPE's 53.3M for the fusion
# encoder have the position's matrices in them.
COUNTED_WITH = {
    'text_proj': 'text_encoder',
    'image_proj': 'image_encoder',
    'position': 'fusion',
}
ROBERTA = dict(vocab_size=50265, type_vocab_size=1)  # what BERT-base differs in


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('config', help='config file')
    parser.add_argument('--image-size', type=int, help="instead of the config's, in pixels")
    parser.add_argument('--vocab-size', type=int, help='words, where a vocabulary file tells them')
    parser.add_argument(
        '--answers',
        type=int,
        help='answers, where a table of them tells (default: as many as in '
        "the file; LXMERT's 9500 where it is not there)",
    )
    return parser.parse_args()


def stand_in(model: ConfigDict, args: argparse.Namespace, folder: Path) -> Iterator[str]:
    """Puts files of ``folder`` in place of those that need not be there.

    Yields:
        What decides about a number of parameters, and was not read.

    Raises:
        FileNotFoundError: when a number can't be had otherwise.
    """
    tokenizer = model.get('data_preprocessor', {}).get('tokenizer', {})
    is_roberta = tokenizer.get('family') == 'roberta'
    if 'vocabulary' in tokenizer:
        if args.vocab_size:
            words = [f'word {number}' for number in range(args.vocab_size - len(SPECIAL_WORDS))]
            tokenizer.vocabulary = str(folder / 'vocab.json')
            Vocabulary([*SPECIAL_WORDS, *words]).write(folder / 'vocab.json')
        elif not Path(tokenizer.vocabulary).is_file():
            raise FileNotFoundError(f'{tokenizer.vocabulary} is not there: give --vocab-size')
    elif tokenizer:  # a size is the text encoder's
        (folder / 'vocab.txt').write_text('[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nword\n')
        model.data_preprocessor.tokenizer = dict(pretrained=str(folder / 'vocab.txt'))
    text = model.get('backbone', model).get('text_encoder', {})
    found = text.get('config')
    if isinstance(found, str) and not Path(found).is_dir():
        if not is_roberta:
            raise FileNotFoundError(f'text_encoder.config={found} is not there')
        text.config = ROBERTA
        yield f"RoBERTa-base's sizes, for {found} is not there"
    for owner in sections(model):
        file = owner.get('answer_list')
        if isinstance(file, str) and (args.answers or not Path(file).is_file()):
            answers = args.answers or 9500
            owner.answer_list = str(folder / 'answers.json')
            Path(owner.answer_list).write_text(json.dumps([f'answer {n}' for n in range(answers)]))
            if owner is not model:  # a model that writes answers has no parameters of them
                yield f'{answers} answers instead of those of {file}'


def sections(config: ConfigDict) -> Iterator[ConfigDict]:
    """A config and all below it."""
    yield config
    for value in config.values():
        if isinstance(value, dict):
            yield from sections(value)


def count(model: nn.Module) -> Counter[str]:
    """Parameters by part, without teachers."""
    counts: Counter[str] = Counter()
    for name, parameter in model.named_parameters():
        part = name.removeprefix('backbone.').split('.')[0]
        if part not in TEACHERS:
            counts[COUNTED_WITH.get(part, part)] += parameter.numel()
    return counts


def main() -> None:
    """Prints the table."""
    args = parse_args()
    config = read_config(args.config).model
    if args.image_size:
        config.get('backbone', config).image_encoder.image_size = args.image_size
    register_all()
    with tempfile.TemporaryDirectory() as folder:
        notes = list(stand_in(config, args, Path(folder)))
        with torch.device('meta'):  # nothing is allocated
            counts = count(MODELS.build(config))
    table = Table()
    table.add_column('part')
    table.add_column('millions', justify='right')
    heads = counts.pop('heads', 0)
    for name, number in counts.items():
        table.add_row(name.replace('_', ' ').replace('fusion', 'fusion encoder'), millions(number))
    table.add_section()
    if heads:
        table.add_row('without heads', millions(counts.total()))
        table.add_row('heads', millions(heads))
        table.add_section()
    table.add_row('in all', millions(counts.total() + heads))
    print(f'Parameters of {args.config}', *notes, sep='\n')
    Console().print(table)


def millions(number: int) -> str:
    """As it is printed."""
    return f'{number / 1e6:.1f}'


if __name__ == '__main__':
    run_or_explain(main)

"""What benchmark scripts share beside measuring: command line, device, vocabulary, tables."""

import argparse
from pathlib import Path

import torch
from rich.table import Table

from xmodal.engine.command_line import ShowDefaults
from xmodal.vocabulary import SPECIAL_WORDS, Vocabulary


def make_parser(doc: str) -> argparse.ArgumentParser:
    """Makes a parser described by the first line of a module's docstring; help shows defaults."""
    return argparse.ArgumentParser(description=doc.splitlines()[0], formatter_class=ShowDefaults)


def default_device() -> str:
    """Returns 'cuda' if there is a GPU, otherwise 'cpu'."""
    return 'cuda' if torch.cuda.is_available() else 'cpu'


def add_device(parser: argparse.ArgumentParser) -> None:
    """Adds ``--device``."""
    parser.add_argument(
        '--device', choices=['cpu', 'cuda'], default=default_device(), help='device of the model'
    )


def add_compile(parser: argparse.ArgumentParser) -> None:
    """Adds ``--compile``."""
    parser.add_argument(
        '--compile',
        nargs='+',
        default=[],
        metavar='CLASS',
        help="layers of ours that are compiled, as by the config's key compile",
    )


def describe_device(device: str) -> str:
    """Returns the name of the GPU or 'CPU', with the number of threads."""
    name = torch.cuda.get_device_name() if device == 'cuda' else 'CPU'
    return f'{name}, {torch.get_num_threads()} thread(s)'


def write_placeholder_vocabulary(folder: str | Path) -> str:
    """Writes a vocabulary of special tokens and one word, so that no tokenizer is downloaded."""
    file = Path(folder, 'vocab.txt')
    file.write_text('[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nword\n')
    return str(file)


def write_placeholder_words(folder: str | Path, size: int) -> str:
    """Writes a vocabulary of words with this many, the special ones included."""
    file = Path(folder, 'vocab.json')
    words = (f'word {index}' for index in range(len(SPECIAL_WORDS), size))
    Vocabulary([*SPECIAL_WORDS, *words]).write(file)
    return str(file)


def make_table(title: str, *headings: str, num_text_columns: int = 1) -> Table:
    """Makes an empty table; columns of numbers, after those of text, are right-aligned."""
    table = Table(title=title)
    for index, heading in enumerate(headings):
        table.add_column(heading, justify='left' if index < num_text_columns else 'right')
    return table

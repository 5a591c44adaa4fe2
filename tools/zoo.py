"""Lists the models that have a name: what they are, and whether weights are there.

Usage::

    python tools/zoo.py
    python tools/zoo.py 'albef*' --task retrieval --pretrained
"""

import argparse

from rich.console import Console
from rich.table import Table

from xmodal.engine.errors import run_or_explain
from xmodal.zoo import find_entry, list_models


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('pattern', nargs='?', default='*', help="of names, as 'albef*'")
    parser.add_argument('--task', help='a part of the name of a task, as retrieval')
    parser.add_argument('--paper', help='a part of the name of a paper, as LXMERT')
    parser.add_argument('--pretrained', action='store_true', help='only models with weights')
    return parser.parse_args()


def main() -> None:
    """Prints the table."""
    args = parse_args()
    table = Table()
    for heading in ('name', 'paper', 'task', 'weights'):
        table.add_column(heading, no_wrap=heading == 'name', overflow='fold')
    for name in list_models(args.pattern, args.task, args.paper, args.pretrained):
        entry = find_entry(name)
        source = 'in the package' if entry.is_shipped else entry.weights or entry.page or '–'
        table.add_row(name, entry.paper, entry.task, source)
    Console().print(table)


if __name__ == '__main__':
    run_or_explain(main)

"""Tables of the models in Markdown, made from the metafiles."""

import re
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

from xmodal.zoo.metafile import CONFIGS, ModelEntry, read_entries

_BLOCK = '<!-- {} from configs/*/metafile.yml, by python tools/analysis/zoo_table.py -->'
_END = '<!-- end -->'
_BYTES = 1e6
_EMBEDDED, _PUBLIC, _QUOTED = 'embedded world', 'public data', 'papers'  # never in one column


def short_table() -> str:
    """The models with weights, or whose parameters are known."""
    entries = read_entries(CONFIGS)
    known = [entry for entry in entries if entry.weights or entry.page or entry.parameters]
    return _table(known, '', ['model', 'family', 'task', 'parameters', 'weights'])


def full_table() -> str:
    """All models, a table a paper."""
    parts = []
    for paper, entries in groupby(read_entries(CONFIGS), lambda entry: entry.paper):
        columns = ['model', 'task', 'parameters', 'weights', _EMBEDDED, _PUBLIC, _QUOTED]
        parts.append(f'### {paper}\n\n{_table(entries, "../", columns)}')
    return '\n\n'.join(parts)


def insert(text: str, kind: str, table: str) -> str:
    """Puts a table where a document has a block of its kind.

    Raises:
        ValueError: when the document has none.
    """
    start = _BLOCK.format(kind)
    pattern = f'({re.escape(start)}\n).*?({re.escape(_END)})'
    changed, count = re.subn(pattern, lambda m: f'{m[1]}\n{table}\n\n{m[2]}', text, flags=re.S)
    if not count:
        raise ValueError(f'expected a line {start!r} and a line {_END!r} after it')
    return changed


#: The documents with tables: where, the kind of its block, and what makes it.
DOCUMENTS = (
    (Path('README.md'), 'models', short_table),
    (Path('docs/zoo.md'), 'all models', full_table),
)


def _table(entries: Iterable[ModelEntry], root: str, columns: list[str]) -> str:
    lines = [f'| {" | ".join(columns)} |', '|' + '---|' * len(columns)]
    for entry in entries:
        cells = {
            'model': f'[`{entry.name}`]({root}{entry.config})',
            'family': entry.paper,
            'task': entry.task,
            'parameters': f'{entry.parameters / 1e6:.1f} M' if entry.parameters else '–',
            'weights': _weights(entry),
            **_results(entry),
        }
        lines.append(f'| {" | ".join(cells[column] for column in columns)} |')
    return '\n'.join(lines)


def _weights(entry: ModelEntry) -> str:
    size = f', {entry.size / _BYTES:.1f} MB' if entry.size else ''
    if entry.is_shipped:
        return f'in the package{size}, {entry.license}'
    if entry.weights:
        return f'[{entry.weights.rsplit("/", 1)[-1]}]({entry.weights}){size}, {entry.license}'
    return f'[by hand]({entry.page}), {entry.license}' if entry.page else '–'


def _results(entry: ModelEntry) -> dict[str, str]:
    embedded = [each for each in entry.results if each['Dataset'].startswith(_EMBEDDED)]
    public = [each for each in entry.results if each not in embedded]
    columns = {_EMBEDDED: embedded, _PUBLIC: public, _QUOTED: entry.quoted}
    return {name: '<br>'.join(map(_result, results)) or '–' for name, results in columns.items()}


def _result(result: dict) -> str:
    data = result['Dataset'].removeprefix(_EMBEDDED).removeprefix(', ')
    deviations = result.get('Standard Deviation', {})
    metrics = ', '.join(
        f'{name} {value}' + (f' ± {deviations[name]}' if name in deviations else '')
        for name, value in result['Metrics'].items()
    )
    return metrics + (f' ({data})' if data else '')

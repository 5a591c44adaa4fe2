"""The page of a machine's benchmarks: tables of figures between two marks."""

from collections.abc import Mapping
from pathlib import Path

from xmodal.errors import ConfigError
from xmodal.files import atomic_write

START, END = '<!-- figures: made by benchmark_all.py -->', '<!-- end of the figures -->'


def fill(page: Path, contents: Mapping[str, dict]) -> None:
    """Replaces what is between the marks of a page.

    Args:
        page: a Markdown file.
        contents: by name of a benchmark, what :class:`~xmodal.benchmark.figures.Figures` writes.

    Raises:
        ConfigError: when the page has not both marks, in this order.
    """
    before, start, rest = page.read_text(encoding='utf-8').partition(START)
    _, end, after = rest.partition(END)
    if not start or not end:
        raise ConfigError(f"{page}: expected the lines '{START}' and '{END}'")
    tables = '\n'.join(render(content) for content in contents.values())
    with atomic_write(page) as file:
        file.write_text(f'{before}{START}\n\n{tables}\n{END}{after}', encoding='utf-8')


def render(content: dict) -> str:
    """A benchmark as Markdown: its command, its machine and a table of its figures."""
    name, machine, versions = content['name'], content['machine'], content['versions']
    processor = f'{machine["processor"]}, {machine["threads"]} thread(s)'
    if machine['gpu']:
        name, processor = f'{name} on a GPU', f'{machine["gpu"]}, launched by {processor}'
    software = ', '.join(f'{package} {number}' for package, number in versions.items())
    rows = (_row(figure) for figure in content['figures'])
    return '\n'.join(
        [
            f'### {name[0].upper()}{name[1:]}',
            '',
            f'```bash\n{content["command"]}\n```',
            '',
            f'{processor}; {software}.',
            '',
            '| what | median | least … greatest | bar | reached |',
            '|---|---:|---:|---:|---|',
            *rows,
            '',
        ]
    )


def _row(figure: dict) -> str:
    """A figure as a row of the table."""
    unit = '×' if figure['unit'] == 'x' else figure['unit']
    spread = f'{_short(figure["low"])} … {_short(figure["high"])}' if 'low' in figure else ''
    bar = figure.get('bar', '').replace('>=', '≥').replace('<=', '≤')
    reached = {True: 'yes', False: 'no'}.get(figure.get('holds'), '')
    what = f'{figure["key"]}, {unit}'
    return f'| {what} | {_short(figure["value"])} | {spread} | {bar} | {reached} |'


def _short(value: float) -> str:
    """A number in three digits, or all of a larger one."""
    return f'{value:,.0f}' if abs(value) >= 100 else f'{value:.3g}'

"""What a query finds, in a terminal and on a sheet of HTML."""

import html
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from xmodal.datasets.image_file import BrokenImageError, decode_image
from xmodal.files import atomic_open
from xmodal.search.catalogue import IndexedImage
from xmodal.search.query import Hit
from xmodal.visualization.figures import overlay_heatmap, shrink, to_uri

_STYLE = (
    ':root{color-scheme:light dark}body{font:15px/1.5 system-ui,sans-serif;margin:2rem}'
    'main{display:grid;gap:1rem;grid-template-columns:repeat(auto-fill,minmax(180px,1fr))}'
    'figure{margin:0}img{width:100%;border-radius:6px}figcaption{overflow-wrap:anywhere}'
)


def thumbnail(image: IndexedImage, side: int) -> np.ndarray:
    """The image with sides of at most ``side`` pixels, RGB.

    Raises:
        BrokenImageError: when its file is gone or broken.
    """
    return shrink(decode_image(image.entry.read(), image.path), side)


def print_hits(hits: list[Hit], title: str) -> None:
    """Prints a table, without the columns that no image fills."""
    if not hits:
        print('nothing found')
        return
    images = [hit.image for hit in hits]
    columns = {
        '': [str(rank) for rank in range(1, len(hits) + 1)],
        'cosine': [f'{hit.score:.3f}' for hit in hits],
        're-ranked': ['' if hit.reranked is None else f'{hit.reranked:.3f}' for hit in hits],
        'size': [f'{i.width} × {i.height}' if i.width else '' for i in images],  # not of regions
        'taken': [image.taken or '' for image in images],
        'image': [image.path for image in images],
    }
    filled = {heading: cells for heading, cells in columns.items() if any(cells)}
    table = Table(*filled, title=escape(title))
    for cells in zip(*filled.values(), strict=True):
        table.add_row(*map(escape, cells))
    print_unwrapped(table)


def print_unwrapped(table: Table) -> None:
    """Prints a table as wide as its cells, so that a path of any length can be copied."""
    console = Console()
    unlimited = console.options.update(max_width=100_000)
    console.width = max(console.width, console.measure(table, options=unlimited).maximum)
    console.print(table)


def print_info(facts: dict, broken: list[tuple[str, str]], as_json: bool) -> None:
    """Prints what an index says about itself, and the images that were left out."""
    if as_json:
        print(json.dumps({**facts, 'broken': broken}))
        return
    if facts.get('checkpoint', '') is None:  # a name stands for both
        facts = {'model': facts['config'], **facts}
        del facts['config'], facts['checkpoint']
    table = Table(show_header=False)
    for name, value in {**facts, 'left out': len(broken)}.items():
        table.add_row(name, escape(str(value)))
    print_unwrapped(table)
    for _, reason in broken[:20]:
        Console().print(escape(f'left out: {reason}'), soft_wrap=True)


def write_sheet(
    file: Path, hits: list[Hit], title: str, heat: Callable[[Hit], np.ndarray] | None = None
) -> None:
    """Writes a page that has the images in it, complete or not at all.

    Args:
        file: of the page.
        hits: what was found.
        title: of the page.
        heat: the heat map of an image, (h, w), which is laid over it; None for no heat maps.
    """
    figures = []
    for hit in hits:
        try:
            image = thumbnail(hit.image, 320)
            uri = to_uri(image if heat is None else overlay_heatmap(image, heat(hit)))
        except BrokenImageError:
            uri = ''
        score = f'{hit.score:.3f}' if hit.reranked is None else f're-ranked {hit.reranked:.3f}'
        caption = html.escape(f'{score} {hit.image.path}')
        figures.append(
            f'<figure><img src="{uri}" alt=""><figcaption>{caption}</figcaption></figure>'
        )
    title = html.escape(title)
    with atomic_open(file) as output:
        output.write(
            f'<!doctype html><meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>'
            f'<h1>{title}</h1><main>{"".join(figures)}</main>'
        )

"""Searches one's own images by a sentence or an image.

Usage::

    python tools/search.py index PHOTOS --config CONFIG --checkpoint CHECKPOINT
    python tools/search.py query 'a dog in the snow and not a person'
    python tools/search.py serve
"""

import argparse
import json
import sys
from functools import partial
from pathlib import Path

from xmodal.engine.command_line import ShowDefaults, at_least
from xmodal.engine.errors import run_or_explain


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest='command', required=True)
    index, query, serve, info = (
        commands.add_parser(name, help=text, description=text, formatter_class=ShowDefaults)
        for name, text in (
            ('index', 'makes an index, or makes it equal to its images again'),
            ('query', 'finds images'),
            ('serve', 'shows a page in the browser'),
            ('info', 'says what an index has'),
        )
    )
    for command in (index, query, serve, info):
        command.add_argument(
            '--index', type=Path, default=Path('work_dirs/index'), help='folder of the index'
        )
    for command in (index, query, serve):
        command.add_argument(
            '--config', help='of the model, its name or its folder (default: that of the index)'
        )
        command.add_argument(
            '--checkpoint',
            help='of the model (default: the last one of its work_dir, or that of the name)',
        )
        command.add_argument('--device', default='cpu', help='of the model')
    index.add_argument(
        'source', help='folder, pattern, .csv, .tsv, .json of ALBEF, .tar, or a region store'
    )
    index.add_argument('--root', type=Path, help='of the paths in a list (default: its folder)')
    index.add_argument('--batch-size', type=at_least(1), default=64, help='images at once')
    index.add_argument('--workers', type=at_least(0), default=2, help='processes that decode')
    index.add_argument('--engine', choices=['flat', 'hnsw', 'ivfpq'], help='default: by size')
    index.add_argument(
        '--dtype', choices=['float16', 'float32'], help='of a new index (default: float16)'
    )
    index.add_argument(
        '--launcher', choices=['none', 'pytorch'], default='none', help='pytorch under torchrun'
    )
    query.add_argument(
        'text',
        nargs='?',
        help="a sentence; 'A and not B' leaves B out, 'A and also B' looks for the union",
    )
    query.add_argument('--image', type=Path, help='more like this image')
    query.add_argument('-k', type=at_least(1), default=10, help='number of images')
    query.add_argument(
        '--rerank', type=at_least(0), default=0, help='ranks so many anew, by the fusion encoder'
    )
    query.add_argument('--path', help='only images whose path has this part')
    query.add_argument(
        '--after', help='only images taken at this date or later: YYYY, YYYY-MM or YYYY-MM-DD'
    )
    query.add_argument('--before', help='only images taken before this date')
    query.add_argument('--min-width', type=at_least(1), help='in pixels')
    query.add_argument('--min-height', type=at_least(1), help='in pixels')
    for command in (query, info):
        command.add_argument('--json', action='store_true', help='prints JSON')
    query.add_argument(
        '--html', type=Path, help='writes a contact sheet, in the place of an older one'
    )
    query.add_argument('--word', help='of the text: the sheet shows where the model sees it')
    serve.add_argument('--port', type=at_least(1), default=7860, help='of 127.0.0.1')
    return parser.parse_args()


def open_index(args: argparse.Namespace) -> tuple:
    """The index with its model, and what the manifest says about the model."""
    from xmodal.apis import ImageIndex, Inferencer
    from xmodal.apis.models import needs_checkpoint
    from xmodal.engine.device import device_of_process
    from xmodal.engine.launch import read_config, set_work_dir
    from xmodal.engine.work_dir import latest_checkpoint
    from xmodal.packaged import is_config_file
    from xmodal.search.manifest import MANIFEST, read_manifest

    if args.command != 'index':
        read_manifest(args.index)  # says that there is none before the model is read
    if args.config is None:
        if args.command == 'index' and not (args.index / MANIFEST).exists():
            raise ValueError(f'{args.index} is no index yet: a new one needs --config, its model')
        manifest = read_manifest(args.index)
        if 'config' not in manifest:
            raise ValueError(
                f'{args.index} was made by a script and does not name its model: give --config, '
                'and --checkpoint where the config is a file'
            )
        args.config = manifest['config']
        args.checkpoint = args.checkpoint or manifest.get('checkpoint')
    if args.checkpoint is None and is_config_file(args.config):
        config = read_config(args.config)
        folder = set_work_dir(config)
        if last := latest_checkpoint(folder):
            args.checkpoint = str(last)
        elif needs_checkpoint(config):
            raise FileNotFoundError(f'{folder}/last_checkpoint is missing: give --checkpoint')
    log_to_stderr()
    inferencer = Inferencer(args.config, args.checkpoint, device_of_process(args.device))
    about = {'config': whole_path(args.config), 'checkpoint': whole_path(args.checkpoint)}
    return ImageIndex(args.index, inferencer), about


def whole_path(name: str | None) -> str | None:
    """A path for every working directory; what is none, as a name of the zoo, as it is."""
    from xmodal.zoo import find_entry

    is_path = name and Path(name).exists() and not find_entry(name)
    return str(Path(name).resolve()) if is_path else name


def log_to_stderr() -> None:
    """Leaves standard output to what was found, which may be JSON."""
    from mmengine.logging import MMLogger

    console, *_ = MMLogger.get_current_instance().handlers
    console.stream = sys.stderr


def run_index(args: argparse.Namespace) -> None:
    """Makes or renews an index."""
    from xmodal.search.sources import unreadable

    index, about = open_index(args)
    names = 'batch_size', 'workers', 'engine', 'dtype', 'root'
    options = about | {name: getattr(args, name) for name in names}
    if args.launcher == 'pytorch':
        from xmodal.search.parallel import processes, update_on_ranks

        with processes() as rank:
            update_on_ranks(index, args.source, **options)
        if rank:
            return
    else:
        index.update(args.source, **options)
    if not len(index.catalogue.ids()):
        broken = index.catalogue.broken()
        raise unreadable(args.source, len(broken), broken[0][1])
    run_info(argparse.Namespace(index=args.index, json=False))


def run_query(args: argparse.Namespace) -> None:
    """Prints what a query finds."""
    from xmodal.search.catalogue import Filter
    from xmodal.search.output import print_hits, write_sheet
    from xmodal.search.query import Query

    query = Query.parse(args.text, args.image)
    if args.word and not (args.html and query.text):
        raise ValueError('--word needs a text and --html')
    index, _ = open_index(args)
    where = Filter(args.path, args.after, args.before, args.min_width, args.min_height)
    (hits,) = index.search([query], args.k, where, args.rerank)
    if args.json:
        print(json.dumps([hit.as_dict() for hit in hits]))
    else:
        print_hits(hits, args.text or str(args.image))
    if args.html:
        heat = args.word and partial(heat_of, index, query.sentence, args.word)
        write_sheet(args.html, hits, args.text or str(args.image), heat)


def heat_of(index, text: str, word: str, hit) -> object:
    """The heat map of a word of a text on an image: the mean, where the word occurs twice."""
    maps, word = index.heat_maps(hit.image, text), index.inferencer.clean_text(word)
    found = [heat for each, heat in maps if each == word]
    if not found:
        words = ', '.join(filter(None, dict(maps)))
        raise ValueError(f'--word={word}, expected one of {words}')
    return sum(found) / len(found)


def run_info(args: argparse.Namespace) -> None:
    """Prints what an index has."""
    from xmodal.search.catalogue import Catalogue
    from xmodal.search.index import CATALOGUE
    from xmodal.search.manifest import read_manifest
    from xmodal.search.output import print_info

    manifest = read_manifest(args.index)
    catalogue = Catalogue(args.index / CATALOGUE)
    print_info({**manifest, 'images': len(catalogue.ids())}, catalogue.broken(), args.json)


def run_serve(args: argparse.Namespace) -> None:
    """Serves the page until it is stopped."""
    from xmodal.search.server import serve

    index, _ = open_index(args)
    serve(index, args.port)


def main() -> None:
    """Runs a command."""
    args = parse_args()
    runs = {'index': run_index, 'query': run_query, 'serve': run_serve, 'info': run_info}
    runs[args.command](args)


if __name__ == '__main__':
    run_or_explain(main)

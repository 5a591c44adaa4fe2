"""Times search: how fast an index is made and renewed, and how well and fast FAISS finds.

    python tools/analysis/benchmark_search.py vectors --count 10000000
    python tools/analysis/benchmark_search.py images --count 10000

``vectors`` draws vectors of length 1 from a mixture: 1000 centres, whose spread and that within
them (0.7 of it) fall with 1 / √i along the i-th direction, as the spectrum of learned embeddings
does. What is added to the centres comes from a pool of 131,072 draws. It builds what an index of so
many images has, and asks for the best ten in a process of its own, one query after the other on one
core. CPU time counts, because other processes do not add to it; pages of the vectors are in the
memory of the system.

``images`` indexes a folder of drawn images and compares images a second with those of the encoder
alone on batches that are ready, in alternating rounds; then it renews an index that is up to date.

``plan`` measures nothing: it says what an index of so many images takes, from what the two others
have measured on one's own machine.
"""

import argparse
import math
import tempfile
import time
from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from rich.console import Console
from tqdm import tqdm

from xmodal.benchmark import alternate, make_parser, make_table, median_ratio, seconds_of
from xmodal.benchmark.memory import proportional_memory
from xmodal.engine.command_line import at_least, not_negative, positive
from xmodal.engine.errors import run_or_explain
from xmodal.search.engine import KINDS, Engine
from xmodal.search.vectors import VectorFile

CENTRES, WITHIN, POOL, CHUNK, BEST = 1000, 0.7, 1 << 17, 1 << 15, 10
READY = 1024  # tensors of the encoder alone


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = make_parser(__doc__)
    commands = parser.add_subparsers(dest='command', required=True)
    vectors, images = commands.add_parser('vectors'), commands.add_parser('images')
    vectors.add_argument('--width', type=at_least(1), default=256, help='of a vector')
    vectors.add_argument('--queries', type=at_least(1), default=50, help='number of queries')
    vectors.add_argument('--engine', choices=KINDS, help='default: by the number of vectors')
    images.add_argument('--model', default='acerpe-shapes', help='a name of the zoo')
    images.add_argument('--side', type=at_least(1), default=96, help='of an image, in pixels')
    images.add_argument('--workers', type=at_least(0), default=2, help='processes that decode')
    images.add_argument('--repeats', type=at_least(1), default=3, help='rounds that count')
    plan = commands.add_parser('plan')
    plan.add_argument('--count', type=at_least(1), default=10**9, help='images')
    plan.add_argument('--width', type=at_least(1), default=256, help='of a vector')
    plan.add_argument('--rate', type=positive, default=1000, help='images a second of a process')
    plan.add_argument('--processes', type=at_least(1), default=64, help='that encode')
    plan.add_argument('--price', type=not_negative, default=2.0, help='of an hour of a process')
    plan.add_argument('--memory', type=positive, default=128, help='of a machine that searches, GB')
    plan.add_argument(
        '--build', type=positive, default=22.6, help='CPU seconds to build a million vectors'
    )
    for command, least, count in ((vectors, BEST, 100_000), (images, 1, 10_000)):
        command.add_argument('--count', type=at_least(least), default=count, help='how many')
        command.add_argument('--folder', help='for temporary files (default: of the system)')
    return parser.parse_args()


def draw(count: int, width: int, seed: int) -> Iterator[np.ndarray]:
    """Vectors of the mixture, float32, in chunks; the mixture does not depend on the seed."""
    mixture, random = np.random.default_rng(0), np.random.default_rng(seed)
    scale = np.arange(1, width + 1, dtype=np.float32) ** -0.5
    turn = np.linalg.qr(mixture.standard_normal((width, width)))[0].astype(np.float32)
    centres = (mixture.standard_normal((CENTRES, width), np.float32) * scale) @ turn
    noise = (random.standard_normal((min(count, POOL), width), np.float32) * WITHIN * scale) @ turn
    for start in range(0, count, CHUNK):
        size = min(CHUNK, count - start)
        rows = centres[random.integers(0, CENTRES, size)]
        rows += noise[random.integers(0, len(noise), size)]
        rows /= np.sqrt(np.einsum('ij,ij->i', rows, rows))[:, None]
        yield rows


def write_vectors(file: Path, count: int, queries: np.ndarray) -> np.ndarray:
    """Writes float16 vectors, and returns the exact best of each query, (Q, 10)."""
    scores = np.zeros((len(queries), 0), np.float32)
    best = np.zeros((len(queries), 0), np.int64)
    chunks = draw(count, queries.shape[1], seed=1)
    with open(file, 'wb') as output:
        for number, rows in enumerate(tqdm(chunks, 'drawing', -(-count // CHUNK))):
            rows = rows.astype(np.float16)
            output.write(rows.tobytes())
            here = queries @ rows.astype(np.float32).T
            ids = np.broadcast_to(np.arange(len(rows)) + number * CHUNK, here.shape)
            scores, best = np.hstack([scores, here]), np.hstack([best, ids])
            kept = np.argpartition(-scores, BEST - 1, 1)[:, :BEST]
            scores, best = (np.take_along_axis(a, kept, 1) for a in (scores, best))
    return best


def ask(folder: Path, count: int, kind: str, queries: np.ndarray, best: np.ndarray) -> None:
    """Measures queries in a process that has the engine alone, and prints a table."""
    import faiss

    faiss.omp_set_num_threads(1)
    rows = VectorFile(folder / 'vectors.f16', 'float16').open(count, queries.shape[1])
    ids = np.load(folder / 'ids.npy', mmap_mode='r')  # as an index does
    engine = Engine.read(folder / 'engine.faiss', rows, ids, kind)
    engine.search(queries[:1], BEST)
    cpu, wall, found = [], [], []
    for query in queries:
        starts = time.process_time(), time.perf_counter()
        found.append(engine.search(query[None], BEST)[0][0])
        cpu.append(time.process_time() - starts[0])
        wall.append(time.perf_counter() - starts[1])
    hits = sum(len(set(a) & set(b)) for a, b in zip(found, best.tolist(), strict=True))
    memory = proportional_memory(['self'])
    table = make_table(f'{count:,} vectors of {queries.shape[1]}, {kind}', '', '')
    table.add_row('recall@10', f'{hits / best.size:.3f}')
    table.add_row('CPU ms a query, mean', f'{1e3 * np.mean(cpu):.2f}')
    table.add_row('CPU ms a query, 95th percentile', f'{1e3 * np.quantile(cpu, 0.95):.2f}')
    table.add_row('ms a query, median', f'{1e3 * np.median(wall):.2f}')
    table.add_row('resident, GB', f'{memory["Pss"] / 1e9:.2f}')
    table.add_row('of it pages of files, GB', f'{memory["Pss_File"] / 1e9:.2f}')
    table.add_row('bytes a vector of the structure', f'{_size(folder, "engine.faiss") / count:.0f}')
    Console().print(table)


def _size(folder: Path, name: str) -> int:
    return (folder / name).stat().st_size


def measure_vectors(args: argparse.Namespace, folder: Path) -> None:
    """Draws, builds and asks."""
    queries = np.concatenate([*draw(args.queries, args.width, seed=2)])
    best = write_vectors(folder / 'vectors.f16', args.count, queries)
    matrix = np.memmap(folder / 'vectors.f16', np.float16, 'r', shape=(args.count, args.width))
    start = time.process_time()
    engine = Engine.build(matrix, np.arange(args.count), args.engine)
    engine.write(folder / 'engine.faiss')
    np.save(folder / 'ids.npy', engine.ids)
    print(f'built in {time.process_time() - start:.0f} CPU seconds')
    arguments = folder, args.count, engine.kind, queries, best
    del engine, matrix
    process = get_context('spawn').Process(target=ask, args=arguments)
    process.start()
    process.join()
    if process.exitcode:
        raise RuntimeError('the process of the queries has failed')


def measure_images(args: argparse.Namespace, folder: Path) -> None:
    """Indexes drawn images, and renews the index."""
    import cv2

    from xmodal.apis import ImageIndex, Inferencer
    from xmodal.search.build import _Images
    from xmodal.search.sources import find_entries

    random = np.random.default_rng(0)
    photos = folder / 'images'
    photos.mkdir()
    for number in tqdm(range(args.count), 'drawing'):
        blocks = random.integers(0, 256, (8, 8, 3), np.uint8)
        size = args.side, args.side
        cv2.imwrite(str(photos / f'{number}.png'), cv2.resize(blocks, size, interpolation=0))
    inferencer = Inferencer(args.model)
    images = _Images(find_entries(str(photos))[:READY], {}, inferencer.pipeline)
    samples = [images[number].sample for number in range(len(images))]
    batches = [inferencer.collate(samples[i : i + 64]) for i in range(0, len(samples), 64)]
    rounds = iter(range(1000))

    def encode() -> None:
        for batch in batches:
            inferencer.encode_batch(batch)

    def index() -> None:
        one = ImageIndex(folder / f'index{next(rounds)}', inferencer)
        one.update(photos, workers=args.workers)

    timers = {'encoder': lambda: seconds_of(encode), 'index': lambda: seconds_of(index)}
    seconds = alternate(timers, args.repeats, warm_up=1)
    last = ImageIndex(folder / f'index{next(rounds) - 1}', inferencer)
    again = min(seconds_of(lambda: last.update(photos, progress=False)) for _ in range(3))
    table = make_table(f'{args.model}, images of {args.side} × {args.side}', '', '')
    counts = {'encoder': len(samples), 'index': args.count}
    rates = {name: counts[name] / np.array(values) for name, values in seconds.items()}
    table.add_row('encoder alone, images/s', f'{np.median(rates["encoder"]):.0f}')
    table.add_row(f'index of {args.count:,} images, images/s', f'{np.median(rates["index"]):.0f}')
    ratio = median_ratio(rates['index'], rates['encoder'])
    table.add_row('index to encoder, median of the rounds', f'{ratio:.2f}')
    table.add_row(f'the same again, {args.count:,} images, seconds', f'{again:.2f}')
    Console().print(table)


def print_plan(args: argparse.Namespace) -> None:
    """What so many images take: disk, memory, hours and their price."""
    codes = args.width // 4 + 8  # 4-bit codes of two dimensions each, and the number of the row
    memory = args.count * codes / 1e9
    encoding = args.count / (args.rate * args.processes) / 3600
    building = args.count / 1e6 * args.build / 3600 / args.processes
    table = make_table(f'{args.count:,} images, vectors of {args.width}', '', '')
    table.add_row(
        'exact vectors, float16, on an SSD, GB', f'{args.count * args.width * 2 / 1e9:,.0f}'
    )
    table.add_row('codes in memory, GB', f'{memory:,.0f}')
    table.add_row(
        f'machines of {args.memory:g} GB that search, with a fifth to spare',
        f'{math.ceil(memory / (0.8 * args.memory))}',
    )
    table.add_row(f'hours of {args.processes} processes to encode', f'{encoding:,.1f}')
    table.add_row('hours of the same to build the structure, a core each', f'{building:,.1f}')
    price = (encoding + building) * args.processes * args.price
    table.add_row(f'price, {args.price:g} an hour of a process', f'{price:,.0f}')
    Console().print(table)


def main() -> None:
    """Runs a command."""
    args = parse_args()
    if args.command == 'plan':
        print_plan(args)
        return
    measure = {'vectors': measure_vectors, 'images': measure_images}[args.command]
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        measure(args, Path(folder))


if __name__ == '__main__':
    run_or_explain(main)

"""Times the scoring of images with captions against the literal loop over captions.

    OMP_NUM_THREADS=1 python tools/analysis/benchmark_similarity.py

* literal: a loop over captions in shards of 100 x 100, each caption repeated for all images of a
  shard, as public implementations of SGRAF compute it and T-EMDE's Listing 1 is called there; one
  shard is measured;
* ours: `xmodal.models.sgraf`, with products in float32 and in bfloat16.

SAF and SGR, with self-attention and with T-EMDE, at the paper's sizes (36 regions, width 1024,
256-d similarity vectors), on random tokens of unit norm; captions have the lengths of COCO's. The
ways take turns, so that a drift of the machine's speed hits all alike, and ratios are medians of
the turns' ratios. The float32 logits of both must agree. A projection to COCO 5K (5,000 images,
25,000 captions) weighs what is computed once an image, once a caption and once a pair of an image
and a word each by its number there.

The training step is the similarity's: all pairs of a batch, the hardest-negative loss and its
gradients down to the tokens. Encoders, the same for both, are left out.
"""

import argparse
import ctypes
import math
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn
from torch.nn.functional import leaky_relu, normalize
from torch.nn.utils.rnn import pad_sequence
from tqdm import tqdm

from xmodal.engine.errors import run_or_explain
from xmodal.engine.launch import ShowDefaults
from xmodal.models.sgraf import SGRAFSimilarity, score_all_pairs
from xmodal.models.sgraf.products import product
from xmodal.registry import MODELS, register_all
from xmodal.structures import PackedTexts, Tokens

WIDTH, REGIONS, DIM, SHARD = 1024, 36, 256, 100
COCO_IMAGES, COCO_CAPTIONS, COCO_WORDS = 5000, 25000, 332427
POOLINGS = {
    'self-attention': dict(type='SelfAttentionGlobal', regions=REGIONS),
    'T-EMDE': dict(type='SketchGlobal', pooling=dict(type='TEMDE', partitions=20, centroids=8)),
}


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=ShowDefaults
    )
    parser.add_argument('--images', type=int, default=100, help='that ours scores')
    parser.add_argument('--captions', type=int, default=500, help='that ours scores')
    parser.add_argument('--batch', type=int, default=128, help='pairs of a training step')
    parser.add_argument('--repeats', type=int, default=3, help='turns of scoring that are counted')
    parser.add_argument('--step-repeats', type=int, default=1, help='turns of training; 0: none')
    parser.add_argument('--compile', action='store_true', help='compile our tiles')
    parser.add_argument(
        '--device', default='cuda' if torch.cuda.is_available() else 'cpu', help='what measures'
    )
    return parser.parse_args()


def coco_lengths(count: int) -> list[int]:
    """Lengths with <start> and <end> as COCO's test captions have: mean 13.3, 99 % ≤ 22, all ≤ 52.

    A log-normal over 8 … 52 with these facts, in even steps of its distribution, shuffled.
    """
    lengths = range(8, 53)
    density = [math.exp(-((math.log(length - 7) - 1.6) ** 2) / (2 * 0.4**2)) for length in lengths]
    cumulated = torch.tensor(density).cumsum(0) / sum(density)
    steps = (torch.arange(count) + 0.5) / count
    return (8 + torch.searchsorted(cumulated, steps))[torch.randperm(count)].tolist()


# The literal loop.


def l2norm(x: Tensor, dim: int = -1) -> Tensor:
    """x / (‖x‖ + 1e-8)."""
    return x / (x.pow(2).sum(dim, keepdim=True).sqrt() + 1e-8)


def self_attention(pooling: nn.Module, tokens: Tensor) -> Tensor:
    """SGRAF's self-attention, (B, L, D) to (B, D)."""
    local = pooling.dropout(pooling.local_norm(pooling.local(tokens)).tanh())
    mean = pooling.dropout(pooling.mean_norm(pooling.mean(tokens.mean(1))).tanh())
    mean = mean[:, None].repeat(1, tokens.shape[1], 1)
    weights = pooling.gate(local * mean).softmax(1)
    return l2norm((weights * tokens).sum(1))


def sketch(pooling: nn.Module, tokens: Tensor) -> Tensor:
    """Listing 1 of T-EMDE, (B, L, D) to (B, N · K)."""
    x = pooling.bn1(pooling.l1(tokens.flatten(0, 1)))
    distance = (x - pooling.centroids) ** 2
    partitions, regions = pooling.partitions, pooling.regions
    distance = distance.view(-1, partitions * regions, pooling.inner_dims).sum(-1)
    assigned = torch.softmax(-distance.view(-1, partitions, regions) * pooling.temp, -1)
    return l2norm(assigned.unflatten(0, tokens.shape[:2]).sum(1)).flatten(1)


def attended(words: Tensor, regions: Tensor) -> Tensor:
    """SCAN's attention of words (B, L, D) to regions (B, R, D)."""
    scores = leaky_relu(torch.bmm(regions, words.mT), 0.1)
    scores = l2norm(scores, 2).mT.contiguous()
    weights = (9 * scores).softmax(2).mT.contiguous()
    return l2norm(torch.bmm(regions.mT, weights).mT)


def literal_shard(module: SGRAFSimilarity, images: Tensor, captions: list[Tensor]) -> Tensor:
    """Logits of one shard, (I, T)."""
    pooling, has_attention = module.global_pooling, hasattr(module.global_pooling, 'regions')
    pool = self_attention if has_attention else sketch
    image_global = pool(pooling.image, images)
    columns = []
    for words in captions:
        text_global = pool(pooling.text, words[None])
        words = words.repeat(len(images), 1, 1)
        local = l2norm(module.local.linear((attended(words, images) - words) ** 2))
        if has_attention:
            node = l2norm(pooling.linear((image_global - text_global) ** 2))
        else:
            both = torch.cat([text_global.expand(len(images), -1), image_global], 1)
            node = pooling.linear(both).relu()
        nodes = torch.cat([node[:, None], local], 1)
        reason = graph if hasattr(module.reasoning, 'steps') else filtration
        columns.append(module.output(reason(module.reasoning, nodes)))
    return torch.cat(columns, 1)


def graph(reasoning: nn.Module, nodes: Tensor) -> Tensor:
    """SGR."""
    for step in reasoning.steps:
        edges = torch.bmm(step.query(nodes), step.key(nodes).mT).softmax(-1)
        nodes = step.linear(torch.bmm(edges, nodes)).relu()
    return nodes[:, 0]


def filtration(reasoning: nn.Module, nodes: Tensor) -> Tensor:
    """SAF."""
    weights = reasoning.bn(reasoning.relevance(nodes).mT).sigmoid()
    weights = weights / (weights.abs().sum(-1, keepdim=True) + 1e-8)
    return l2norm(torch.bmm(weights, nodes).squeeze(1))


# Measuring.


class Gauge:
    """Random tokens, a similarity, and the ways to score and to train it.

    Args:
        reasoning: 'SAF' or 'SGR'.
        pooling: a name of ``POOLINGS``.
        args: of the command line.
    """

    def __init__(self, reasoning: str, pooling: str, args: argparse.Namespace) -> None:
        self.args, self.reasoning, self.pooling = args, reasoning, pooling
        config = dict(
            type='SGRAFSimilarity',
            embed_dims=WIDTH,
            dim=DIM,
            reasoning=dict(type=reasoning),
            global_pooling=POOLINGS[pooling],
        )
        self.module = MODELS.build(config).to(args.device).eval()
        images = torch.randn(args.images, REGIONS, WIDTH, device=args.device)
        self.images, self.captions = normalize(images, dim=-1), self._captions(args.captions)
        self.texts = PackedTexts.from_list(self.captions)

    def _captions(self, count: int) -> list[Tensor]:
        device = self.args.device
        lengths = coco_lengths(count)
        return [normalize(torch.randn(n, WIDTH, device=device), dim=-1) for n in lengths]

    @torch.no_grad()
    def literal(self) -> Tensor:
        """Logits by the loop, of the first shard: no shard gains by another."""
        return literal_shard(self.module, self.images[:SHARD], self.captions[:SHARD])

    def ours(self, dtype: torch.dtype = torch.float32) -> Tensor:
        """Logits by tiles."""
        images = Tokens(self.images)
        return score_all_pairs(
            self.module, images, self.texts, dtype=dtype, compile=self.args.compile
        )

    @torch.no_grad()
    def precompute(self, dtype: torch.dtype) -> tuple[float, float]:
        """Seconds of what is computed once an image and once a caption, of all of them."""
        images = timed(lambda: self.module.precompute_images(Tokens(self.images), dtype))[0]
        total = 0.0
        for length in {len(words) for words in self.captions}:
            own = torch.stack([words for words in self.captions if len(words) == length])
            total += timed(partial(self.module.precompute_texts, Tokens(own), dtype))[0]
        return images, total

    def steps(self) -> dict[str, Callable[[], Tensor]]:
        """A training step each way, from the same tokens."""
        batch, device = self.args.batch, self.args.device
        self.module.train()
        images = normalize(torch.randn(batch, REGIONS, WIDTH, device=device), dim=-1)
        captions = self._captions(batch)
        lengths = torch.tensor([len(words) for words in captions], device=device)
        padded = pad_sequence(captions, batch_first=True)
        mask = torch.arange(padded.shape[1], device=device) < lengths[:, None]
        images.requires_grad_()
        padded.requires_grad_()
        same = torch.eye(batch, dtype=torch.bool, device=device)
        head = MODELS.build(dict(type='TripletLoss'))

        def finish(logits: Tensor) -> Tensor:
            loss = head.loss(self.module.to_scores(logits), same)['loss_triplet']
            loss.backward()
            return loss.detach()

        def literal() -> Tensor:
            own = [words[:length] for words, length in zip(padded, lengths.tolist(), strict=True)]
            return finish(literal_shard(self.module, images, own))

        def ours(dtype: torch.dtype) -> Tensor:
            with torch.autocast(device, dtype, enabled=dtype != torch.float32):
                needed = partial(head.needed, same=same)
                logits = self.module(Tokens(images), Tokens(padded, mask), needed)
            return finish(logits)

        return {
            'literal': literal,
            'ours': partial(ours, torch.float32),
            'ours, bf16': partial(ours, torch.bfloat16),
        }


def timed(way: Callable) -> tuple[float, object]:
    """Seconds, and what came out."""
    synchronize()
    start = time.perf_counter()
    found = way()
    synchronize()
    return time.perf_counter() - start, found


def synchronize() -> None:
    """Waits for the GPU."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def peak_memory(way: Callable) -> float:
    """MiB that a way takes beyond what is held before it."""
    if torch.cuda.is_available():
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        way()
        return (torch.cuda.max_memory_allocated() - before) / 2**20
    ctypes.CDLL(None).malloc_trim(0)  # gives back what earlier ways have freed
    Path('/proc/self/clear_refs').write_text('5')  # forgets the peak so far
    before = resident('VmRSS')
    way()
    return (resident('VmHWM') - before) / 2**10


def resident(key: str) -> int:
    """KiB of memory of this process, by its name in /proc."""
    lines = Path('/proc/self/status').read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f'{key}:'))


def matrix_rate(device: str, dtype: torch.dtype) -> float:
    """TFLOP/s of a large product, the best of ten and of the ways to write it."""
    size = 8192 if device == 'cuda' else 1024
    x, y = (torch.randn(size, size, device=device, dtype=dtype) for _ in range(2))
    ways = (partial(torch.matmul, x, y), partial(product, x, y))
    with torch.no_grad():
        best = min(timed(way)[0] for _ in range(10) for way in ways)
    return 2 * size**3 / best / 1e12


def pair_flops(gauge: Gauge, lengths: list[int], ours: bool) -> float:
    """Operations that captions take with one image, without what is computed once an item."""
    flops = 0.0
    for length in lengths:
        flops += length * (4 * REGIONS * WIDTH + 2 * WIDTH * DIM)
        nodes = length + 1
        if gauge.pooling == 'self-attention':
            flops += 2 * WIDTH * DIM
        elif not ours:
            flops += 2 * 320 * DIM
        if gauge.reasoning == 'SAF':
            flops += 4 * nodes * DIM
        elif ours:
            flops += 2 * (4 * nodes * DIM**2 + 4 * nodes**2 * DIM)
            flops += 4 * DIM**2 + 4 * nodes * DIM
        else:
            flops += 3 * (6 * nodes * DIM**2 + 4 * nodes**2 * DIM)
    return flops


WAYS = {'literal': None, 'ours': torch.float32, 'ours, bf16': torch.bfloat16}


class Measured:
    """What one way of scoring took.

    Args:
        gauge: what was measured.
        way: its name.
        seconds: of each turn.
    """

    def __init__(self, gauge: Gauge, way: str, seconds: list[float]) -> None:
        self.gauge, self.way, self.dtype = gauge, way, WAYS[way]
        captions = gauge.captions[:SHARD] if self.dtype is None else gauge.captions
        self.images = min(SHARD, len(gauge.images)) if self.dtype is None else len(gauge.images)
        self.lengths = [len(words) for words in captions]
        self.seconds = statistics.median(seconds)
        self.per_word = [one / (self.images * sum(self.lengths)) for one in seconds]

    @property
    def per_million_pairs(self) -> float:
        """Seconds for a million pairs with captions of COCO's mean length."""
        return statistics.median(self.per_word) * COCO_WORDS / COCO_CAPTIONS * 1e6

    @property
    def tflops(self) -> float:
        """Of its own operations."""
        own = pair_flops(self.gauge, self.lengths, self.dtype is not None)
        return own * self.images / self.seconds / 1e12

    def faster_than(self, other: 'Measured') -> float:
        """Median of the turns' ratios."""
        pairs = zip(other.per_word, self.per_word, strict=True)
        return statistics.median(theirs / own for theirs, own in pairs)

    def coco_seconds(self) -> float:
        """For COCO 5K; the loop computes everything once a shard, so it is all in its pairs."""
        images = texts = 0.0
        if self.dtype is not None:
            images, texts = self.gauge.precompute(self.dtype)
        pairs = (self.seconds - images - texts) / (self.images * sum(self.lengths))
        return (
            pairs * COCO_IMAGES * COCO_WORDS
            + images * COCO_IMAGES / self.images
            + texts * COCO_CAPTIONS / len(self.lengths)
        )


def measure_scoring(gauge: Gauge, rates: dict, table: Table, bar: tqdm) -> None:
    """Adds the three rows of one similarity."""
    ways = {
        name: gauge.literal if dtype is None else partial(gauge.ours, dtype)
        for name, dtype in WAYS.items()
    }
    logits, memory = {}, {}
    for name, way in ways.items():
        memory[name] = peak_memory(lambda name=name, way=way: logits.update({name: way()}))
        bar.update()
    expected = logits['literal'].cpu()
    logits = {name: own[:SHARD, :SHARD].cpu() for name, own in logits.items()}
    torch.testing.assert_close(logits['ours'], expected, atol=1e-5, rtol=1e-5)
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(gauge.args.repeats):
        for name, way in ways.items():
            seconds[name].append(timed(way)[0])
            bar.update()
    measured = {name: Measured(gauge, name, own) for name, own in seconds.items()}
    for name, own in measured.items():
        error = float((logits[name] - expected).std() / expected.std())
        table.add_row(
            gauge.reasoning,
            gauge.pooling,
            name,
            f'{own.per_million_pairs:.1f}',
            f'x {own.faster_than(measured["literal"]):.2f}',
            f'{memory[name]:.0f}',
            f'{own.coco_seconds() / 60:.1f}',
            f'{own.tflops:.3f}',
            f'{own.tflops / rates[own.dtype or torch.float32]:.0%}',
            f'{error:.0e}' if own.dtype else '',
            end_section=name == list(ways)[-1],
        )


def measure_steps(gauge: Gauge, table: Table, bar: tqdm) -> None:
    """Adds the three rows of one similarity in training."""
    steps = gauge.steps()
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    memory = {}
    for turn in range(gauge.args.step_repeats):
        for name, step in steps.items():
            if turn == 0:
                memory[name] = peak_memory(lambda n=name, s=step: seconds[n].append(timed(s)[0]))
            else:
                seconds[name].append(timed(step)[0])
            bar.update()
    for name in steps:
        ratios = [a / b for a, b in zip(seconds['literal'], seconds[name], strict=True)]
        table.add_row(
            gauge.reasoning,
            gauge.pooling,
            name,
            f'{statistics.median(seconds[name]):.2f}',
            f'x {statistics.median(ratios):.2f}',
            f'{memory[name]:.0f}',
            end_section=name == 'ours, bf16',
        )


def make_table(title: str, *headings: str) -> Table:
    """An empty table; columns of numbers are on the right."""
    table = Table(title=title)
    for place, heading in enumerate(headings):
        table.add_column(heading, justify='left' if place < 3 else 'right')
    return table


def main() -> None:
    """Measures and prints."""
    args = parse_args()
    register_all()
    torch.manual_seed(0)
    rates = {dtype: matrix_rate(args.device, dtype) for dtype in (torch.float32, torch.bfloat16)}
    shown = ', '.join(f'{str(dtype)[6:]} {rate:.3f}' for dtype, rate in rates.items())
    device = torch.cuda.get_device_name() if args.device == 'cuda' else 'CPU'
    scoring = make_table(
        f'{args.images} images, {args.captions} captions; {device}, {torch.get_num_threads()} '
        f'thread(s), matrix products at most {shown} TFLOP/s',
        'reasoning',
        'global node',
        'way',
        's a million pairs',
        'faster',
        'MiB',
        'COCO 5K min',
        'TFLOP/s',
        'of rate',
        'error / std',
    )
    training = make_table(
        f'a training step of {args.batch} pairs',
        'reasoning',
        'global node',
        'way',
        's',
        'faster',
        'MiB',
    )
    total = 4 * len(WAYS) * (1 + args.repeats + args.step_repeats)
    with tqdm(total=total, desc='measuring') as bar:
        for reasoning in ('SAF', 'SGR'):
            for pooling in POOLINGS:
                gauge = Gauge(reasoning, pooling, args)
                measure_scoring(gauge, rates, scoring, bar)
                if args.step_repeats:
                    measure_steps(gauge, training, bar)
    console = Console(width=130)
    console.print(scoring)
    if args.step_repeats:
        console.print(training)


if __name__ == '__main__':
    run_or_explain(main)

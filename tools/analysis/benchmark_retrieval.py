"""Times three ways to test retrieval with image-text matching, and checks that they agree.

    python tools/analysis/benchmark_retrieval.py configs/acerpe/albef_4m.py --image-size 384

* full: the matching score of every image with every text;
* straightforward: the best k texts of every image, then the best k images of every text, the image
  repeated k times and all of it computed for each pair, as ALBEF does;
* ours: the same candidates, each pair once, and what is known of an image or a text alone computed
  once for many pairs (`xmodal.engine.loops.scorers.match_pairs`), as `ITMReranker` does.

Noise in the place of pictures and words, weights as a config's model starts. The ways take turns,
so that a drift of the machine's speed hits all alike; ratios are medians of the turns' ratios. All
three encode the texts anew, images are encoded before. The metrics of the last two must be
identical, and those of ours with k = all those of the full scoring.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from mmengine.logging import MMLogger
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

from xmodal.engine.errors import run_or_explain
from xmodal.engine.launch import ShowDefaults, read_config
from xmodal.engine.loops.scorers.match_pairs import match_pairs
from xmodal.evaluation.reranking import candidate_pairs, two_stage_scores
from xmodal.evaluation.retrieval import Gallery, retrieval_metrics
from xmodal.registry import MODELS, register_all
from xmodal.structures import PackedTexts, Tokens


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=ShowDefaults
    )
    parser.add_argument('config', help='a config whose model has a matching head')
    parser.add_argument('--images', type=int, default=100, help='of a gallery')
    parser.add_argument('--captions', type=int, default=5, help='of each image')
    parser.add_argument('--words', type=int, default=30, help='of the longest text')
    parser.add_argument('--topk', type=int, default=16, help='candidates of each query')
    parser.add_argument('--image-size', type=int, help="in pixels; default: the config's")
    parser.add_argument('--pair-batch', type=int, default=40, help='pairs judged at once')
    parser.add_argument('--repeats', type=int, default=3, help='turns counted, after a warm-up')
    parser.add_argument(
        '--device', default='cuda' if torch.cuda.is_available() else 'cpu', help='what measures'
    )
    return parser.parse_args()


def build_model(args: argparse.Namespace) -> nn.Module:
    """The config's model with the weights it starts from and a stand-in vocabulary."""
    config = read_config(args.config).model
    if args.image_size:
        config.backbone.image_encoder.image_size = args.image_size
    config.update(queue_length=0, momentum=None)
    with tempfile.TemporaryDirectory() as folder:
        vocabulary = Path(folder, 'vocab.txt')
        vocabulary.write_text('[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nword\n')
        config.data_preprocessor.tokenizer.pretrained = str(vocabulary)
        return MODELS.build(config).to(args.device).eval()


class Gauge:
    """A random test set, encoded, and the ways to score its pairs.

    Args:
        args: of the command line.
    """

    def __init__(self, args: argparse.Namespace) -> None:
        self.model, self.pair_batch, self.topk = build_model(args), args.pair_batch, args.topk
        count = args.images * args.captions
        self.owner = torch.arange(args.images).repeat_interleave(args.captions)
        side = self.model.backbone.image_encoder.vit.patch_embed.img_size[0]
        with torch.no_grad():
            encoded = [
                self.model.encode_image(torch.randn(1, 3, side, side, device=args.device))
                for _ in range(args.images)
            ]
        embeddings = torch.cat([image.tokens.embeddings for image in encoded])
        self.images = Tokens(embeddings, grid_size=encoded[0].tokens.grid_size)
        lengths = torch.randint(args.words // 2, args.words + 1, (count,))
        mask = torch.arange(args.words) < lengths[:, None]
        self.texts = PackedTexts.from_padded(torch.randint(5, 100, mask.shape), mask)
        # Partners are somewhat nearer than others, so that recalls are neither 0 nor 100.
        self.similarity = torch.randn(args.images, count)
        self.similarity[self.owner, torch.arange(count)] += 2

    def full(self) -> Gallery:
        """Every pair."""
        pairs = torch.ones_like(self.similarity).nonzero()
        return self._ranked(pairs, self._expanded(pairs))

    def straightforward(self) -> Gallery:
        """The candidates of each direction, computed pair by pair."""
        images, texts = self.similarity.shape
        by_image = self.similarity.topk(min(self.topk, texts), dim=1).indices
        by_text = self.similarity.topk(min(self.topk, images), dim=0).indices
        rows = torch.arange(images)[:, None].expand_as(by_image)
        columns = torch.arange(texts).expand_as(by_text)
        pairs = torch.cat(
            [
                torch.stack([rows.flatten(), by_image.flatten()], 1),
                torch.stack([by_text.T.flatten(), columns.T.flatten()], 1),
            ]
        )
        return self._ranked(pairs, self._expanded(pairs))

    def ours(self, topk: int | None = None) -> Gallery:
        """The candidates of both directions, each once."""
        pairs = candidate_pairs(self.similarity, self.owner, topk or self.topk)
        return self._ranked(
            pairs, match_pairs(self.model, self.images, self.texts, pairs, self.pair_batch)
        )

    @torch.no_grad()
    def _expanded(self, pairs: Tensor) -> Tensor:
        """Matching scores with an image and a text for every pair."""
        device = self.images.embeddings.device
        input_ids, mask = self.texts.to(device).pad()
        encoded = [
            self.model.encode_text(*part).tokens.embeddings
            for part in zip(input_ids.split(256), mask.split(256), strict=True)
        ]
        texts = Tokens(torch.cat(encoded), mask)
        scores = []
        for chunk in pairs.to(device).split(self.pair_batch):
            image, text = self.images.select(chunk[:, 0]), texts.select(chunk[:, 1])
            fused = self.model.backbone.fuse(image, text, need_image=False)
            logits = self.model.heads['itm'](fused.text_tokens).float()
            scores.append((logits[:, 1] - logits[:, 0]).cpu())
        return torch.cat(scores)

    def _ranked(self, pairs: Tensor, matching: Tensor) -> Gallery:
        return Gallery(two_stage_scores(self.similarity, pairs, matching), self.owner)


def timed(way: Callable[[], Gallery]) -> tuple[float, Gallery]:
    """Seconds, and what was found."""
    start = time.perf_counter()
    gallery = way()
    return time.perf_counter() - start, gallery


def assert_identical(name: str, one: Gallery, other: Gallery) -> None:
    """Whether two ways found the same.

    Raises:
        AssertionError: when a score differs by more than rounding, or a metric at all.
    """
    torch.testing.assert_close(one.scores, other.scores, atol=1e-3, rtol=1e-3)
    found, expected = retrieval_metrics(one), retrieval_metrics(other)
    assert found == expected, f'{name}: {found} is not {expected}'


def measure(gauge: Gauge, repeats: int) -> dict[str, list[float]]:
    """Seconds of every turn; checks the first turn's results, which warms up."""
    ways = {'full': gauge.full, 'straightforward': gauge.straightforward, 'ours': gauge.ours}
    first = {name: way() for name, way in ways.items()}
    assert_identical('ours against straightforward', first['ours'], first['straightforward'])
    everything = gauge.ours(topk=gauge.similarity.numel())
    assert_identical('ours with k = all against full', everything, first['full'])
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(repeats):
        for name, way in ways.items():
            seconds[name].append(timed(way)[0])
    return seconds


def print_table(args: argparse.Namespace, seconds: dict[str, list[float]]) -> None:
    """One row a way, each beside ours."""
    size = f'{args.images} images, {args.images * args.captions} texts, k = {args.topk}'
    table = Table(title=f'{args.config}: {size}, {args.device}')
    for heading in ('way', 'median s', 'of ours'):
        table.add_column(heading, justify='left' if heading == 'way' else 'right')
    for name, own in seconds.items():
        pairs = zip(own, seconds['ours'], strict=True)
        slower = statistics.median(one / ours for one, ours in pairs)
        table.add_row(name, f'{statistics.median(own):.2f}', f'x {slower:.2f}')
    console = Console(width=100)
    console.print(table)
    console.print('Metrics: ours = straightforward; ours with k = all = full.')


def main() -> None:
    """Measures and prints."""
    args = parse_args()
    MMLogger.get_instance('benchmark', log_level='ERROR')
    register_all()
    torch.manual_seed(0)
    print_table(args, measure(Gauge(args), args.repeats))


if __name__ == '__main__':
    run_or_explain(main)

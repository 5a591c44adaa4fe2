"""Times three ways to test retrieval with ITM re-ranking, and checks that they agree.

    python tools/analysis/benchmark_retrieval.py configs/acerpe/albef_4m.py --image-size 384

* full: ITM scores of every image with every text;
* straightforward: the k best texts of every image, then the k best images of every text, each pair
  computed separately with the image repeated k times, as ALBEF does;
* ours: the same candidates, each pair once; what depends only on an image or only on a text is
  computed once for many pairs (`xmodal.engine.loops.scorers.match_pairs`), as `RetrievalLoop` does.

The inputs are random, the weights are the initial weights of the config. The variants run in
alternating rounds; ratios are medians over the rounds. All three encode the texts in every round;
the images are encoded beforehand. The metrics of the last two must be identical, and so must those
of ours with k = all and of the full scoring.
"""

import argparse
import statistics
import tempfile
from functools import partial

import torch
from mmengine.logging import MMLogger
from rich.console import Console
from torch import Tensor, nn

from xmodal.benchmark import (
    alternate,
    default_device,
    make_parser,
    make_table,
    median_ratio,
    seconds_of,
    write_placeholder_vocabulary,
)
from xmodal.engine.errors import run_or_explain
from xmodal.engine.launch import read_config
from xmodal.engine.loops.scorers.match_pairs import match_pairs
from xmodal.evaluation.reranking import candidate_pairs, two_stage_scores
from xmodal.evaluation.retrieval import Gallery, retrieval_metrics
from xmodal.registry import MODELS, register_all
from xmodal.structures import PackedTexts, Tokens


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = make_parser(__doc__)
    parser.add_argument('config', help='a config whose model has an ITM head')
    parser.add_argument('--images', type=int, default=100, help='images of the test set')
    parser.add_argument('--captions', type=int, default=5, help='captions of each image')
    parser.add_argument('--words', type=int, default=30, help='length of the longest text')
    parser.add_argument('--topk', type=int, default=16, help='candidates of each query')
    parser.add_argument('--image-size', type=int, help='in pixels; default: that of the config')
    parser.add_argument('--pair-batch', type=int, default=40, help='pairs scored at once')
    parser.add_argument('--repeats', type=int, default=3, help='rounds that count, after a warm-up')
    parser.add_argument('--device', default=default_device(), help='device of the model')
    return parser.parse_args()


def build_model(args: argparse.Namespace) -> nn.Module:
    """Builds the model of the config with its initial weights and a placeholder vocabulary."""
    config = read_config(args.config).model
    if args.image_size:
        config.backbone.image_encoder.image_size = args.image_size
    config.update(queue_length=0, momentum=None)
    with tempfile.TemporaryDirectory() as folder:
        config.data_preprocessor.tokenizer.pretrained = write_placeholder_vocabulary(folder)
        return MODELS.build(config).to(args.device).eval()


class RetrievalBenchmark:
    """A random test set with encoded images, and three ways to score its pairs.

    Args:
        args: command line.
    """

    def __init__(self, args: argparse.Namespace) -> None:
        self.model, self.pair_batch, self.topk = build_model(args), args.pair_batch, args.topk
        count = args.images * args.captions
        self.text_to_image = torch.arange(args.images).repeat_interleave(args.captions)
        side = self.model.backbone.image_encoder.image_size
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
        # Matching pairs are a little more similar, so that recalls are neither 0 nor 100.
        self.similarity = torch.randn(args.images, count)
        self.similarity[self.text_to_image, torch.arange(count)] += 2

    def full(self) -> Gallery:
        """Scores every pair."""
        pairs = torch.ones_like(self.similarity).nonzero()
        return self._rank(pairs, self._match_expanded(pairs))

    def straightforward(self) -> Gallery:
        """Scores the candidates of each direction, pair by pair."""
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
        return self._rank(pairs, self._match_expanded(pairs))

    def ours(self, topk: int | None = None) -> Gallery:
        """Scores the candidates of both directions, each once."""
        pairs = candidate_pairs(self.similarity, self.text_to_image, topk or self.topk)
        return self._rank(
            pairs, match_pairs(self.model, self.images, self.texts, pairs, self.pair_batch)
        )

    @torch.no_grad()
    def _match_expanded(self, pairs: Tensor) -> Tensor:
        """Computes ITM scores with an image and a text for every pair."""
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
            logits = self.model.matching_head(fused.text_tokens).float()
            scores.append((logits[:, 1] - logits[:, 0]).cpu())
        return torch.cat(scores)

    def _rank(self, pairs: Tensor, matching: Tensor) -> Gallery:
        return Gallery(two_stage_scores(self.similarity, pairs, matching), self.text_to_image)


def assert_identical(name: str, actual: Gallery, expected: Gallery) -> None:
    """Checks that two ways give the same ranking.

    Raises:
        AssertionError: if a score differs by more than rounding, or a metric differs at all.
    """
    torch.testing.assert_close(actual.scores, expected.scores, atol=1e-3, rtol=1e-3)
    metrics, expected_metrics = retrieval_metrics(actual), retrieval_metrics(expected)
    assert metrics == expected_metrics, f'{name}: got {metrics}, expected {expected_metrics}'


def measure(benchmark: RetrievalBenchmark, repeats: int) -> dict[str, list[float]]:
    """Measures the seconds of every round, after a check of the results, which is the warm-up."""
    variants = {name: getattr(benchmark, name) for name in ('full', 'straightforward', 'ours')}
    results = {name: score() for name, score in variants.items()}
    assert_identical('ours and straightforward', results['ours'], results['straightforward'])
    all_pairs = benchmark.ours(topk=benchmark.similarity.numel())
    assert_identical('ours with k = all and full', all_pairs, results['full'])
    timers = {name: partial(seconds_of, score) for name, score in variants.items()}
    return alternate(timers, repeats, warm_up=0)


def print_table(args: argparse.Namespace, seconds: dict[str, list[float]]) -> None:
    """Prints one row for each way, compared with ours."""
    size = f'{args.images} images, {args.images * args.captions} texts, k = {args.topk}'
    table = make_table(f'{args.config}: {size}, {args.device}', '', 'median s', 'relative to ours')
    for name, values in seconds.items():
        ratio = median_ratio(values, seconds['ours'])
        table.add_row(name, f'{statistics.median(values):.2f}', f'x {ratio:.2f}')
    console = Console(width=100)
    console.print(table)
    console.print('Metrics: ours = straightforward; ours with k = all = full.')


def main() -> None:
    """Measures and prints."""
    args = parse_args()
    MMLogger.get_instance('benchmark', log_level='ERROR')
    register_all()
    torch.manual_seed(0)
    print_table(args, measure(RetrievalBenchmark(args), args.repeats))


if __name__ == '__main__':
    run_or_explain(main)

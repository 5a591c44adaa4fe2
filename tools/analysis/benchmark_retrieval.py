"""Times three ways to test retrieval with ITM re-ranking, and checks that they agree.

    python tools/analysis/benchmark_retrieval.py configs/acerpe/albef_4m.py --image-size 384
    python tools/analysis/benchmark_retrieval.py configs/acerpe/albef_4m.py --peer ALBEF --json FILE

* full: ITM scores of every image with every text;
* reference: `evaluation` of ALBEF's Retrieval.py: the k best texts of every image, then the k best
  images of every text, query by query. What both directions want is scored twice, and each pair
  has a copy of the image, whose keys and values are projected anew. With `--peer`, a checkout of
  github.com/salesforce/ALBEF, it is that function itself, which pads all texts to 30 words, and
  `full` is left out;
* ours: the same candidates by `ITMReranker`, as `RetrievalLoop` does: each pair once, and an image
  is projected once for a batch of its texts (`xmodal.engine.loops.scorers.match_pairs`).

The inputs are random, the weights are the initial weights of the config, or those of the peer. The
texts are as long as COCO's. The variants run in
alternating rounds; ratios are medians over the rounds. All three encode the texts in every round;
the images are encoded beforehand. The recalls up to R@k of reference and ours must be identical,
and so must all metrics of ours with k = all and of the full scoring.
"""

import argparse
import statistics
from functools import partial
from pathlib import Path

import torch
from mmengine.logging import MMLogger
from rich.console import Console
from torch import Tensor, nn

from xmodal.benchmark import (
    add_device,
    albef_peer,
    alternate,
    make_parser,
    make_table,
    median_ratio,
    pretraining,
    ratios_by_round,
    seconds_of,
)
from xmodal.benchmark.albef_retrieval import PublicRetrieval
from xmodal.benchmark.figures import Figures
from xmodal.benchmark.random_gallery import random_gallery
from xmodal.converters.albef import convert
from xmodal.engine.command_line import at_least
from xmodal.engine.errors import run_or_explain
from xmodal.engine.launch import read_config
from xmodal.engine.loops import ITMReranker
from xmodal.evaluation.retrieval import RECALLS, Gallery, retrieval_metrics
from xmodal.evaluation.retrieval_results import DIRECTIONS
from xmodal.registry import register_all
from xmodal.structures import PackedTexts, Tokens


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = make_parser(__doc__)
    parser.add_argument('config', help='a config whose model has an ITM head')
    parser.add_argument('--images', type=at_least(1), default=100, help='images of the test set')
    parser.add_argument('--captions', type=at_least(1), default=5, help='captions of each image')
    parser.add_argument('--topk', type=at_least(0), default=16, help='candidates of each query')
    parser.add_argument(
        '--image-size', type=at_least(1), help='in pixels; default: that of the config'
    )
    parser.add_argument('--pair-batch', type=at_least(1), default=40, help='pairs scored at once')
    parser.add_argument(
        '--repeats', type=at_least(1), default=3, help='rounds that count, after a warm-up'
    )
    parser.add_argument('--peer', type=Path, help="a checkout of ALBEF's code")
    parser.add_argument('--json', type=Path, help='file for the figures, replaced if it exists')
    add_device(parser)
    return parser.parse_args()


def build_model(args: argparse.Namespace) -> nn.Module:
    """Builds the model of the config with its initial weights and a placeholder vocabulary."""
    config = read_config(args.config, 'model')
    if args.image_size:
        config.model.backbone.image_encoder.image_size = args.image_size
    config.model.update(queue_length=0, momentum=None)
    return pretraining.build_model(config, None).to(args.device).eval()


class RetrievalBenchmark:
    """A random test set with encoded images, and three ways to score its pairs.

    Args:
        args: command line.
    """

    def __init__(self, args: argparse.Namespace) -> None:
        self.model, self.device = build_model(args), args.device
        self.pair_batch, self.topk = args.pair_batch, args.topk
        self.peer = take_peer(self.model, args.peer) if args.peer else None
        self.encoded = random_gallery(
            self.model, args.images, args.captions, args.device, bool(args.peer)
        )
        self.itc_scores = self.encoded.image_embeddings @ self.encoded.text_embeddings.T
        self.text_to_image = self.encoded.text_to_image

    @torch.no_grad()
    def full(self) -> Gallery:
        """Scores every pair."""
        texts, images = self._encode_texts(), torch.arange(len(self.itc_scores))
        columns = torch.arange(len(self.text_to_image))
        rows = [self._match(image.expand_as(columns), columns, texts) for image in images]
        return Gallery(torch.stack(rows), self.text_to_image)

    @torch.no_grad()
    def reference(self) -> Gallery:
        """Scores the candidates of each query, in a matrix for each direction."""
        if self.peer:
            tokens = self.encoded.image_tokens.embeddings
            return self.peer.score(tokens, self.encoded.texts, self.text_to_image, self.topk)
        texts = self._encode_texts()
        i2t_scores, t2i_scores = (torch.full_like(self.itc_scores, -100) for _ in range(2))
        for row, similarity in enumerate(self.itc_scores):
            best = similarity.topk(min(self.topk, len(similarity))).indices
            i2t_scores[row, best] = self._match(torch.full_like(best, row), best, texts)
        for column, similarity in enumerate(self.itc_scores.T):
            best = similarity.topk(min(self.topk, len(similarity))).indices
            t2i_scores[best, column] = self._match(best, torch.full_like(best, column), texts)
        return Gallery(i2t_scores, self.text_to_image, t2i_scores=t2i_scores)

    def ours(self, topk: int | None = None) -> Gallery:
        """Encodes the texts, and scores the candidates of both directions, each once."""
        scorer = ITMReranker(topk or self.topk, pair_batch=self.pair_batch)
        text = scorer.encode_texts(self.model, *self.encoded.texts.to(self.device).pad())
        words = PackedTexts.from_padded(text.tokens.embeddings, text.tokens.attention_mask)
        return scorer.score(self.model, self.encoded._replace(texts=words.to('cpu')))

    def _encode_texts(self) -> Tokens:
        """All texts, padded to the longest."""
        input_ids, mask = self.encoded.texts.to(self.device).pad()
        encoded = [
            self.model.encode_text(*part).tokens.embeddings
            for part in zip(input_ids.split(256), mask.split(256), strict=True)
        ]
        return Tokens(torch.cat(encoded), mask)

    def _match(self, image_rows: Tensor, text_rows: Tensor, texts: Tokens) -> Tensor:
        """The logits of 'yes' of pairs, with an image and a text for each of them."""
        images, scores = self.encoded.image_tokens, []
        device = images.embeddings.device
        for pairs in torch.stack([image_rows, text_rows], 1).to(device).split(self.pair_batch):
            image, text = images.select(pairs[:, 0]), texts.select(pairs[:, 1])
            fused = self.model.backbone.fuse(image, text, need_image=False)
            scores.append(self.model.matching_head(fused.text_tokens)[:, 1].float().cpu())
        return torch.cat(scores)


def take_peer(model: nn.Module, folder: Path) -> PublicRetrieval:
    """Builds the peer, and gives our model its weights."""
    tokenizer, side = model.data_preprocessor.tokenizer, model.backbone.image_encoder.image_size
    peer = albef_peer.load(folder, tokenizer, side, queue_length=1)
    albef_peer.give_weights(convert(albef_peer.weights(peer))[0], model)
    return PublicRetrieval(folder, peer.to(next(model.parameters()).device))


def assert_reference_agrees(actual: Gallery, expected: Gallery, topk: int) -> None:
    """Checks ours against the reference, whose pairs that are no candidates tie at -100.

    Raises:
        AssertionError: if the score of a candidate differs by more than rounding, or a recall
            among the k best differs at all.
    """
    for scores, reference in zip(actual.directions, expected.directions, strict=True):
        chosen = reference > -100
        torch.testing.assert_close(scores[chosen].float(), reference[chosen], atol=1e-5, rtol=1e-5)
    metrics, expected_metrics = retrieval_metrics(actual), retrieval_metrics(expected)
    for name in (f'{direction}/R@{k}' for direction in DIRECTIONS for k in RECALLS if k <= topk):
        assert metrics[name] == expected_metrics[name], (
            f'{name}: ours gives {metrics[name]}, the reference {expected_metrics[name]}'
        )


def assert_identical(actual: Gallery, expected: Gallery) -> None:
    """Checks that ours with all candidates gives the ranking of the full scoring.

    Raises:
        AssertionError: if a score differs by more than rounding, or a metric differs at all.
    """
    for scores, full in zip(actual.directions, expected.directions, strict=True):
        torch.testing.assert_close(scores.float(), full, atol=1e-3, rtol=1e-3)
    metrics, expected_metrics = retrieval_metrics(actual), retrieval_metrics(expected)
    assert metrics == expected_metrics, f'got {metrics}, expected {expected_metrics}'


def measure(benchmark: RetrievalBenchmark, repeats: int) -> dict[str, list[float]]:
    """Measures the seconds of every round, after a check of the results, which is the warm-up."""
    names = ('reference', 'ours') if benchmark.peer else ('full', 'reference', 'ours')
    variants = {name: getattr(benchmark, name) for name in names}
    results = {name: score() for name, score in variants.items()}
    assert_reference_agrees(results['ours'], results['reference'], benchmark.topk)
    if 'full' in results:
        assert_identical(benchmark.ours(topk=benchmark.itc_scores.numel()), results['full'])
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
    console.print('Scores of the candidates and recalls: ours = reference.')


def main() -> None:
    """Measures and prints."""
    args = parse_args()
    MMLogger.get_instance('benchmark', log_level='ERROR')
    register_all()
    torch.manual_seed(0)
    seconds = measure(RetrievalBenchmark(args), args.repeats)
    print_table(args, seconds)
    if args.json:
        ratios = ratios_by_round(seconds['reference'], seconds['ours'])
        figures = Figures('retrieval', args.device).add('ours', seconds['ours'], 's')
        figures.add('reference / ours', ratios, 'x', '>= 4').write(args.json)


if __name__ == '__main__':
    run_or_explain(main)

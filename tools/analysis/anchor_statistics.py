"""Prints statistics of the anchors of a trained model: number, distance, location.

    python tools/analysis/anchor_statistics.py configs/acerpe/pretrain_shapes.py \\
        work_dirs/pretrain_shapes/epoch_9.pth --instances data/shapes/coco/instances_test.json

    python tools/analysis/anchor_statistics.py configs/acerpe/grounding_shapes.py \\
        work_dirs/grounding_shapes/epoch_1.pth

Matched pairs are test images with their first caption; mismatched pairs are the same images with
the caption of another one, the next in the batch. With --instances: the area under the ROC curve of
the maps of a word (similarity, nearness, Grad-CAM) against the boxes of the objects that it names.
Words that name a category of COCO are its name, and for persons also man, woman, child and the
like. 'Among named objects' is the area over the tokens on what any word of the caption names: a map
that finds what captions speak of, but is the same for all words, has about 0.5 there. Without
--instances, for a config of grounding: the area of the maps of an expression against the true box
of its object; they are means of the maps of its words, as in the test of grounding. 'Among
proposals' is the area over the tokens on the object and on proposals that are not it. Tokens of an
image are the patches of its grid, or its regions; one is on an object if its centre is in a box.
Without all of the test set, images are spread evenly over it.
"""

import argparse
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from pathlib import Path

import torch
from rich.console import Console
from torch import Tensor, nn

from xmodal.apis import load_model
from xmodal.apis.location import Location, measure_location
from xmodal.benchmark import make_parser, make_table
from xmodal.build_functions import find_component
from xmodal.datasets.base import evenly_spaced
from xmodal.datasets.referring import ReferringDataset
from xmodal.engine.command_line import Options, at_least
from xmodal.engine.errors import ConfigError, run_or_explain
from xmodal.engine.launch import merge_options, read_config
from xmodal.evaluation.first_captions import EncodedCaptions, encode_first_captions
from xmodal.registry import DATASETS, FUNCTIONS
from xmodal.structures import Tokens
from xmodal.visualization.anchors import find_position
from xmodal.visualization.patch_maps import mean_over_tokens


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = make_parser(__doc__)
    parser.add_argument('config', help='config of a model with ACE-RPE')
    parser.add_argument('checkpoint')
    parser.add_argument(
        '--instances',
        type=Path,
        nargs='+',
        default=[],
        help='COCO instances of the test images: the boxes of what words name',
    )
    parser.add_argument(
        '--images', type=at_least(1), default=500, help='number of test images, or of expressions'
    )
    parser.add_argument(
        '--cfg-options', nargs='+', action=Options, default={}, help='override keys of the config'
    )
    return parser.parse_args()


def pair_statistics(model: nn.Module, image: Tokens, text: Tokens) -> dict[str, Tensor]:
    """Computes statistics of each image with the text of the same row, (B,) each."""
    position = model.backbone.position
    relation = model.relate(image, text)
    first = int(model.backbone.image_encoder.has_cls)
    patches = image.content_mask(bool(first))
    statistics = position.statistics(relation, text.attention_mask, patches)
    if relation.distance is None:
        return statistics
    distance = relation.distance[:, first:, 1:]
    real = text.attention_mask[:, None, 1:, None] & distance.isfinite()
    reached = distance.masked_fill(~real, torch.nan)
    statistics['mean of P'] = reached.flatten(1).nanmean(1)
    # Over the patches, for each word and group: how much P says about the location of the word.
    centred = reached - reached.nanmean(1, keepdim=True)
    statistics['deviation of P over patches'] = centred.square().flatten(1).nanmean(1).sqrt()
    # The words are the queries, the patches the keys and values; in the first layer.
    sides = {'query': (text, relation.text_mean, 1)}
    for role, weight in position.weight.items():
        tokens, mean, start = sides.get(role, (image, relation.image_mean, first))
        norms = (mean @ weight[0]).norm(dim=-1), tokens.embeddings.norm(dim=-1)
        addition, length = (mean_over_tokens(values, tokens, start) for values in norms)
        statistics[f'addition to {role} / token'] = addition / length
    return statistics


def next_of_another(image_ids: Tensor) -> Tensor:
    """For each row of a batch the next one that has another image, (B,); after the last the first.

    Raises:
        ValueError: when all rows are of one image.
    """
    is_same = image_ids[:, None] == image_ids
    if is_same.all():
        raise ValueError(
            f'mismatched pairs need two images, and a batch of {len(image_ids)} samples shows only '
            f'image {int(image_ids[0])}: give more --images'
        )
    rows = torch.arange(len(image_ids))
    steps = (rows - rows[:, None]) % len(rows)
    return steps.masked_fill(is_same.cpu(), len(rows)).argmin(1)


class PairMeans:
    """Means of the statistics over matched and over mismatched pairs.

    Args:
        model: in eval mode, with ACE-RPE.
    """

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self._values = {kind: defaultdict(list) for kind in ('matched', 'mismatched')}

    @torch.no_grad()
    def counting(self, captions: Iterable[EncodedCaptions]) -> Iterator[EncodedCaptions]:
        """Passes images and captions on, and counts their pairs."""
        for encoded in captions:
            others = encoded.text.select(next_of_another(encoded.batch.image_ids))
            for kind, text in (('matched', encoded.text), ('mismatched', others)):
                for name, values in pair_statistics(self.model, encoded.image, text).items():
                    self._values[kind][name].append(values)
            yield encoded

    def means(self) -> dict[str, dict[str, float]]:
        """By the kind of pairs and the name of the statistic."""
        return {
            # A pair that no anchor reaches has no P.
            kind: {name: float(torch.cat(parts).nanmean()) for name, parts in statistics.items()}
            for kind, statistics in self._values.items()
        }


def measure(args: argparse.Namespace) -> tuple[dict[str, dict[str, float]], Location | None]:
    """Returns means over matched and mismatched pairs, and what the maps find."""
    config = read_config(args.config, 'test_dataloader')
    merge_options(config, args.cfg_options)
    model = load_model(config, args.checkpoint)
    position = find_position(model)
    if not getattr(position, 'has_similarities', False):
        raise ConfigError(
            f'{args.config}: model.backbone.position is {type(position).__name__}, which has no '
            "anchors; expected type='ace_rpe'"
        )
    if not hasattr(model, 'relate'):
        raise ConfigError(
            f'{args.config}: {type(model).__name__} encodes no image and text apart; expected a '
            "config with model.type='AlbefPretrainer', as of pre-training, retrieval or grounding"
        )
    dataset = DATASETS.build(config.test_dataloader.dataset)
    collate = find_component(config.test_dataloader.collate_fn.type, FUNCTIONS)
    rows = evenly_spaced(range(len(dataset)), args.images)
    pairs, location = PairMeans(model), None
    captions = pairs.counting(encode_first_captions(model, dataset, rows, collate, 'images'))
    if args.instances or isinstance(dataset, ReferringDataset):
        location = measure_location(model, captions, args.instances)
    else:
        deque(captions, maxlen=0)
    return pairs.means(), location


def location_rows(location: Location, targets: str) -> Iterator[tuple[str, str]]:
    """Label and value of each line of the table.

    Args:
        location: as measured.
        targets: what the maps should find.
    """
    yield targets, str(location.count)
    if location.anchors is not None:
        for place, share in zip(('on', 'off'), location.anchors, strict=True):
            yield f'share of anchors {place} the object of a word', f'{share:.3f}'
    yield from auc_rows(location.aucs)
    if location.rivals:
        yield f'{targets}, with tokens {location.scope}', str(location.rivals)
        yield from auc_rows(location.among, f', {location.scope}')


def auc_rows(aucs: dict[str, Tensor], scope: str = '') -> Iterator[tuple[str, str]]:
    """Label and value of the AUC of each map, and of its groups."""
    for name, values in aucs.items():
        labels = ['']
        if len(values) > 1:
            groups = [f', group {group}' for group in range(len(values) - 1)]
            labels = [', mean of the groups', *groups]
        for label, auc in zip(labels, values, strict=True):
            yield f'AUC of {name}{label}{scope}', f'{auc:.3f}'


def main() -> None:
    """Prints the table."""
    args = parse_args()
    means, location = measure(args)
    table = make_table(f'Anchors of {args.checkpoint}', '', 'matched', 'mismatched')
    for name in means['matched']:
        table.add_row(name.replace('_', ' '), *(f'{values[name]:.3f}' for values in means.values()))
    if location:
        table.add_section()
        targets = 'words that name objects' if args.instances else 'expressions of one object'
        for row in location_rows(location, targets):
            table.add_row(*row, '')
    Console(width=100).print(table)


if __name__ == '__main__':
    run_or_explain(main)

"""Prints statistics of the anchors of a trained model: number, distance, location.

    python tools/analysis/anchor_statistics.py configs/acerpe/pretrain_shapes.py \\
        work_dirs/pretrain_shapes/epoch_9.pth --instances data/shapes/coco/instances_test.json

Matched pairs are test images with their first caption; mismatched pairs are the same images with
the caption of another one, the next in the batch. With --instances: the area under the ROC curve of
the maps of a word (similarity, nearness, Grad-CAM) against the boxes of the objects that it names.
Tokens of an image are the patches of its grid, or its regions. Words that name a category of COCO
are its name, and for persons also man, woman, child and the like.
"""

import argparse
from collections import defaultdict
from pathlib import Path
from statistics import fmean

import torch
from rich.console import Console
from torch import Tensor, nn
from tqdm import tqdm

from xmodal.apis import load_model
from xmodal.benchmark import make_parser, make_table
from xmodal.build_functions import find_component
from xmodal.engine.command_line import Options, at_least
from xmodal.engine.errors import ConfigError, run_or_explain
from xmodal.engine.keys import check_options
from xmodal.engine.launch import read_config
from xmodal.evaluation.location import (
    first_captions,
    location_auc,
    read_objects,
    words_on_objects,
)
from xmodal.functional import anchor_mask
from xmodal.registry import DATASETS, FUNCTIONS
from xmodal.structures import Tokens
from xmodal.visualization.anchors import find_position
from xmodal.visualization.grad_cam import grad_cam

BATCH = 50
SIMILARITY = 'AUC of the similarity S'


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
    parser.add_argument('--images', type=at_least(1), default=500, help='number of test images')
    parser.add_argument(
        '--cfg-options', nargs='+', action=Options, default={}, help='override keys of the config'
    )
    return parser.parse_args()


def pair_statistics(model: nn.Module, image: Tokens, text: Tokens) -> dict[str, Tensor]:
    """Computes statistics of each image with the text of the same row, (B,) each."""
    position = model.backbone.position
    relation = model.relate(image, text)
    first = int(model.backbone.image_encoder.has_cls)
    regions = None if first else image.full_mask()
    statistics = position.statistics(relation, text.attention_mask, regions)
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
        addition, length = (_mean_over_tokens(values, tokens, start) for values in norms)
        statistics[f'addition to {role} / token'] = addition / length
    return statistics


def _mean_over_tokens(values: Tensor, tokens: Tokens, first: int) -> Tensor:
    """Averages over the tokens from ``first`` on without padding, (B,)."""
    mask = tokens.attention_mask
    real = torch.ones_like(values) if mask is None else mask.to(values)
    return (values * real)[:, first:].sum(1) / real[:, first:].sum(1)


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


def location_statistics(
    maps: dict[str, Tensor], anchors: Tensor | None, index: int, on_object: Tensor
) -> dict[str, float]:
    """Where the anchors of a word are, and the AUC of each map of it.

    Args:
        maps: by name, (M, N) or (M, N, G) for one of each group; higher is nearer.
        anchors: (M, N, G) bool; None for a position without a threshold.
        index: of the word.
        on_object: (M,) bool.
    """
    statistics = {}
    if anchors is not None:
        of_word = anchors[:, index].float()
        statistics = {
            'share of anchors on the object of a word': float(of_word[on_object].mean()),
            'share of anchors off the object of a word': float(of_word[~on_object].mean()),
        }
    for name, scores in maps.items():
        auc = location_auc(scores[:, index], on_object)
        if auc.ndim:
            groups = {f'{name}, group {group}': float(value) for group, value in enumerate(auc)}
            auc = location_auc(scores[:, index].mean(-1), on_object)
            statistics |= {f'{name}, mean of the groups': float(auc), **groups}
        else:
            statistics[name] = float(auc)
    return statistics


def word_maps(model: nn.Module, image: Tokens, text: Tokens) -> dict[str, Tensor]:
    """The maps of words: S_G of Eq. 3, -P of Eq. 7 if there is one, and Grad-CAM of each layer.

    Returns:
        By name, (B, M, N, G), and (B, M, N) for Grad-CAM.
    """
    relation, first = model.relate(image, text), int(model.backbone.image_encoder.has_cls)
    maps = {SIMILARITY: relation.similarity[:, first:, 1:]}
    if relation.distance is not None:
        maps['AUC of the nearness -P'] = -relation.distance[:, first:, 1:]
    if model.matching_head is not None and image.grid_size is not None:
        # In the last layer only [CLS] has a map.
        for layer in range(model.backbone.fusion.depth - 1):
            words, _ = grad_cam(model, image, text, layer)
            maps[f'AUC of Grad-CAM, layer {layer}'] = words[:, 1:].flatten(2).transpose(1, 2)
    return maps


@torch.no_grad()
def measure(args: argparse.Namespace) -> tuple[dict[str, dict[str, float]], dict[str, float]]:
    """Returns means over matched and mismatched pairs, and of the words that name objects."""
    config = read_config(args.config, 'test_dataloader')
    check_options(config, args.cfg_options)
    config.merge_from_dict(args.cfg_options)
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
    delta = getattr(position, 'delta', None)  # of positions with a threshold
    dataset = DATASETS.build(config.test_dataloader.dataset)
    collate = find_component(config.test_dataloader.collate_fn.type, FUNCTIONS)
    objects = {key: value for file in args.instances for key, value in read_objects(file).items()}
    sums = {kind: defaultdict(list) for kind in ('matched', 'mismatched')}
    located = defaultdict(list)
    indices = torch.arange(min(args.images, len(dataset)))
    # Of about equal size: a last batch of one image would have no mismatched pair.
    for part in tqdm(indices.tensor_split(-(-len(indices) // BATCH)), 'images'):
        batch = first_captions(model, dataset, part.tolist(), collate)
        image = model.encode_image(batch.images).tokens
        text = model.encode_text(batch.input_ids, batch.attention_mask).tokens
        others = text.select(next_of_another(batch.image_ids))
        for kind, paired in (('matched', text), ('mismatched', others)):
            for name, values in pair_statistics(model, image, paired).items():
                sums[kind][name].append(values)
        maps = word_maps(model, image, text) if objects else {}
        for row, index, on_object in words_on_objects(model, batch, image, objects):
            of_pair = {name: values[row, : len(on_object)] for name, values in maps.items()}
            anchors = None if delta is None else anchor_mask(of_pair[SIMILARITY], delta)
            for name, value in location_statistics(of_pair, anchors, index, on_object).items():
                located[name].append(value)
    if objects and not located:
        raise ConfigError(
            f'--instances {" ".join(map(str, args.instances))}: no word of the captions names an '
            'object of its image: are the ids of the images those of the test set?'
        )
    means = {
        # A pair that no anchor reaches has no P.
        kind: {name: float(torch.cat(parts).nanmean()) for name, parts in statistics.items()}
        for kind, statistics in sums.items()
    }
    return means, {name: fmean(values) for name, values in located.items()}


def main() -> None:
    """Prints the table."""
    args = parse_args()
    means, located = measure(args)
    table = make_table(f'Anchors of {args.checkpoint}', '', 'matched', 'mismatched')
    for name in means['matched']:
        table.add_row(name.replace('_', ' '), *(f'{values[name]:.3f}' for values in means.values()))
    if located:
        table.add_section()
        for name, value in located.items():
            table.add_row(name, f'{value:.3f}', '')
    Console(width=100).print(table)


if __name__ == '__main__':
    run_or_explain(main)

"""Prints statistics of the anchors of ACE-RPE in a trained model: number, distance, location.

    python tools/analysis/anchor_statistics.py configs/acerpe/pretrain_shapes.py \\
        work_dirs/pretrain_shapes/epoch_9.pth --instances data/shapes/coco/instances_test.json

Matched pairs are test images with their first caption; mismatched pairs are the same images with
the caption of the next image.
"""

import argparse
from collections import defaultdict
from pathlib import Path

import torch
from rich.console import Console
from torch import Tensor, nn
from tqdm import tqdm

from xmodal.apis import load_model
from xmodal.benchmark import make_parser, make_table
from xmodal.engine.command_line import at_least
from xmodal.engine.errors import ConfigError, run_or_explain
from xmodal.engine.launch import read_config
from xmodal.fields import read_object
from xmodal.files import reads
from xmodal.functional import anchor_mask
from xmodal.models.necks import AnchorRelativePosition
from xmodal.registry import DATASETS, FUNCTIONS
from xmodal.structures import Tokens

BATCH = 50


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = make_parser(__doc__)
    parser.add_argument('config', help='config of a model with ACE-RPE')
    parser.add_argument('checkpoint')
    parser.add_argument(
        '--instances',
        type=Path,
        help='COCO instances of the test images, for the share of anchors of a word on its object',
    )
    parser.add_argument('--images', type=at_least(1), default=500, help='number of test images')
    return parser.parse_args()


def pair_statistics(model: nn.Module, image: Tokens, text: Tokens) -> dict[str, Tensor]:
    """Computes statistics of each image with the text of the same row, (B,) each."""
    position = model.backbone.position
    relation = model.relate(image, text)
    statistics = position.statistics(relation, text.attention_mask)
    distance = relation.distance[:, 1:, 1:]
    real = text.attention_mask[:, None, 1:, None] & distance.isfinite()
    reached = distance.masked_fill(~real, torch.nan)
    statistics['mean of P'] = reached.flatten(1).nanmean(1)
    # Over the patches, for each word and group: how much P says about the location of the word.
    centred = reached - reached.nanmean(1, keepdim=True)
    statistics['deviation of P over patches'] = centred.square().flatten(1).nanmean(1).sqrt()
    # The words are the queries, the patches the keys and values; in the first layer.
    sides = {'query': (text, relation.text_mean)}
    for role, weight in position.weight.items():
        tokens, mean = sides.get(role, (image, relation.image_mean))
        norms = (mean @ weight[0]).norm(dim=-1), tokens.embeddings.norm(dim=-1)
        addition, length = (_mean_over_tokens(values, tokens) for values in norms)
        statistics[f'addition to {role} / token'] = addition / length
    return statistics


def _mean_over_tokens(values: Tensor, tokens: Tokens) -> Tensor:
    """Averages over the tokens without [CLS] and padding, (B,)."""
    mask = tokens.attention_mask
    real = torch.ones_like(values) if mask is None else mask.to(values)
    return (values * real)[:, 1:].sum(1) / real[:, 1:].sum(1)


def anchors_on_objects(
    anchors: Tensor, words: list[str], objects: list[tuple[set[str], list[float]]], patch_size: int
) -> list[tuple[float, float]]:
    """Returns for each word that names objects the share of anchors on and off their patches.

    Args:
        anchors: (h, w, N, G) bool.
        words: N words, without padding.
        objects: the words that name an object, and its box x, y, width, height in pixels.
        patch_size: in pixels.
    """
    rows, columns = anchors.shape[:2]
    y, x = (patch_size * (torch.arange(count) + 0.5) for count in (rows, columns))
    shares = []
    for index, word in enumerate(words):
        on_object = torch.zeros(rows, columns, dtype=torch.bool)
        for tags, (left, top, width, height) in objects:
            if word in tags:
                inside = (top <= y) & (y < top + height)
                on_object |= inside[:, None] & ((left <= x) & (x < left + width))[None]
        if on_object.any() and not on_object.all():
            of_word = anchors[:, :, index].float()
            shares.append((float(of_word[on_object].mean()), float(of_word[~on_object].mean())))
    return shares


@reads("COCO's instances")
def read_objects(file: Path) -> dict[int, list[tuple[set[str], list[float]]]]:
    """Reads the names, attributes and boxes of the objects of each image."""
    content = read_object(file)
    names = {item.integer('id'): item.name('name') for item in content.objects('categories')}
    objects = defaultdict(list)
    for instance in content.objects('annotations'):
        tags = {names[instance.integer('category_id')], *instance.texts('attributes', [])}
        objects[instance.integer('image_id')].append((tags, instance.items('bbox')))
    return objects


@torch.no_grad()
def measure(args: argparse.Namespace) -> tuple[dict[str, dict[str, float]], list[float]]:
    """Returns means over matched and mismatched pairs, and the shares of anchors on objects."""
    config = read_config(args.config, 'test_dataloader')
    model = load_model(config, args.checkpoint)
    position = model.backbone.position
    if type(position) is not AnchorRelativePosition:
        raise ConfigError(
            f'{args.config}: model.backbone.position is {type(position).__name__}, which has no '
            "anchors; expected type='ace_rpe'"
        )
    dataset = DATASETS.build(config.test_dataloader.dataset)
    collate = FUNCTIONS.get(config.test_dataloader.collate_fn.type)
    objects = read_objects(args.instances) if args.instances else {}
    tokenizer = model.data_preprocessor.tokenizer
    sums = {kind: defaultdict(list) for kind in ('matched', 'mismatched')}
    shares = []
    for start in tqdm(range(0, min(args.images, len(dataset)), BATCH), 'images'):
        stop = min(start + BATCH, args.images, len(dataset))
        samples = [dataset[index] for index in range(start, stop)]
        for sample in samples:
            sample['data_samples'].text = sample['data_samples'].text[:1]
        batch = model.data_preprocessor(collate(samples), False)['inputs']
        image = model.encode_image(batch.images).tokens
        text = model.encode_text(batch.input_ids, batch.attention_mask).tokens
        others = text.select(torch.arange(len(samples)).roll(-1))
        for kind, paired in (('matched', text), ('mismatched', others)):
            for name, values in pair_statistics(model, image, paired).items():
                sums[kind][name].append(values)
        similarity = model.relate(image, text).similarity[:, 1:, 1:]
        anchors = anchor_mask(similarity, position.delta).unflatten(1, image.grid_size)
        for row, ids in enumerate(batch.input_ids[:, 1:]):
            words = tokenizer.convert_ids_to_tokens(ids[batch.attention_mask[row, 1:]].tolist())
            shown = objects.get(int(batch.image_ids[row]), [])
            patch_size = batch.images.shape[-1] // image.grid_size[1]
            shares += anchors_on_objects(anchors[row], words, shown, patch_size)
    means = {
        kind: {name: float(torch.cat(parts).mean()) for name, parts in statistics.items()}
        for kind, statistics in sums.items()
    }
    return means, torch.tensor(shares).mean(0).tolist() if shares else []


def main() -> None:
    """Prints the table."""
    args = parse_args()
    means, shares = measure(args)
    table = make_table(f'Anchors of {args.checkpoint}', '', 'matched', 'mismatched')
    for name in means['matched']:
        table.add_row(name.replace('_', ' '), *(f'{values[name]:.3f}' for values in means.values()))
    if shares:
        table.add_section()
        for where, share in zip(('on', 'off'), shares, strict=True):
            table.add_row(f'share of anchors {where} the object of a word', f'{share:.3f}', '')
    Console(width=100).print(table)


if __name__ == '__main__':
    run_or_explain(main)

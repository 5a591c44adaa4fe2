"""Shows what ACE-RPE's anchors say in a trained model: how many, how far, where, how loud.

    python tools/analysis/anchor_statistics.py configs/acerpe/pretrain_shapes.py \\
        work_dirs/pretrain_shapes/epoch_9.pth --instances data/shapes/coco/instances_test.json

Matched pairs are test images with their first caption, mismatched ones the same images with the
next image's.
"""

import argparse
from collections import defaultdict
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn
from tqdm import tqdm

from xmodal.apis import load_model
from xmodal.engine.errors import run_or_explain
from xmodal.engine.launch import ShowDefaults, read_config
from xmodal.errors import ConfigError
from xmodal.files import read_json
from xmodal.functional import anchor_mask
from xmodal.models.necks import AnchorRelativePosition
from xmodal.registry import DATASETS, FUNCTIONS
from xmodal.structures import Tokens

BATCH = 50


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=ShowDefaults
    )
    parser.add_argument('config', help='config of a model with ACE-RPE')
    parser.add_argument('checkpoint')
    parser.add_argument(
        '--instances',
        type=Path,
        help="COCO instances of the test images, to see where a thing's "
        'words have their anchors: on it, or elsewhere',
    )
    parser.add_argument('--images', type=int, default=500, help='how many are looked at')
    return parser.parse_args()


def describe_pairs(model: nn.Module, image: Tokens, text: Tokens) -> dict[str, Tensor]:
    """Statistics of each image with the text of its row, (B,) each."""
    position = model.backbone.position
    relation = model.relate(image, text)
    found = position.statistics(relation, text)
    distance = relation.distance[:, 1:, 1:]
    real = text.attention_mask[:, None, 1:, None] & distance.isfinite()
    shown = distance.masked_fill(~real, torch.nan)
    found['mean of P'] = shown.flatten(1).nanmean(1)
    # Over the patches of one word in one group: what P tells of where the word is.
    centred = shown - shown.nanmean(1, keepdim=True)
    found['deviation of P over patches'] = centred.square().flatten(1).nanmean(1).sqrt()
    # Words ask, patches answer; in the first layer.
    sides = {'query': (text, relation.text_mean)}
    for role, weight in position.weight.items():
        tokens, mean = sides.get(role, (image, relation.image_mean))
        own = (mean @ weight[0]).norm(dim=-1), tokens.embeddings.norm(dim=-1)
        addition, length = (_mean_over_tokens(norms, tokens) for norms in own)
        found[f'addition to {role}, of the tokens'] = addition / length
    return found


def _mean_over_tokens(values: Tensor, tokens: Tokens) -> Tensor:
    """Mean over real tokens but [CLS], (B,)."""
    mask = tokens.attention_mask
    real = torch.ones_like(values) if mask is None else mask.to(values)
    return (values * real)[:, 1:].sum(1) / real[:, 1:].sum(1)


def anchors_on_things(
    anchors: Tensor, words: list[str], things: list[tuple[set[str], list[float]]], side: int
) -> list[tuple[float, float]]:
    """For each word that names things: the share of anchors on their patches, and on the others.

    Args:
        anchors: (h, w, N, G) bool.
        words: N, padding left out.
        things: the tags of each thing, and its box x, y, width, height in pixels.
        side: of a patch, in pixels.
    """
    rows, columns = anchors.shape[:2]
    y, x = (side * (torch.arange(count) + 0.5) for count in (rows, columns))
    shares = []
    for place, word in enumerate(words):
        on = torch.zeros(rows, columns, dtype=torch.bool)
        for tags, (left, top, width, height) in things:
            if word in tags:
                inside = (top <= y) & (y < top + height)
                on |= inside[:, None] & ((left <= x) & (x < left + width))[None]
        if on.any() and not on.all():
            own = anchors[:, :, place].float()
            shares.append((float(own[on].mean()), float(own[~on].mean())))
    return shares


def read_things(file: Path) -> dict[int, list[tuple[set[str], list[float]]]]:
    """Tags and boxes of the things of each image."""
    content = read_json(file)
    names = {category['id']: category['name'] for category in content['categories']}
    things = defaultdict(list)
    for thing in content['annotations']:
        tags = {names[thing['category_id']], *thing.get('attributes', [])}
        things[thing['image_id']].append((tags, thing['bbox']))
    return things


@torch.no_grad()
def measure(args: argparse.Namespace) -> tuple[dict[str, dict[str, float]], list[float]]:
    """Means over all pairs, matched and mismatched; and the two shares of anchors."""
    config = read_config(args.config)
    model = load_model(config, args.checkpoint)
    position = model.backbone.position
    if type(position) is not AnchorRelativePosition:
        raise ConfigError(
            f'{args.config}: model.backbone.position is {type(position).__name__}, which has no '
            "anchors; expected type='ace_rpe'"
        )
    dataset = DATASETS.build(config.test_dataloader.dataset)
    collate = FUNCTIONS.get(config.test_dataloader.collate_fn.type)
    things = read_things(args.instances) if args.instances else {}
    tokenizer = model.data_preprocessor.tokenizer
    sums = {kind: defaultdict(list) for kind in ('matched', 'mismatched')}
    on_things = []
    for start in tqdm(range(0, min(args.images, len(dataset)), BATCH), 'looking'):
        stop = min(start + BATCH, args.images, len(dataset))
        samples = [dataset[index] for index in range(start, stop)]
        for sample in samples:
            sample['data_samples'].text = sample['data_samples'].text[:1]
        batch = model.data_preprocessor(collate(samples), False)['inputs']
        image = model.encode_image(batch.images).tokens
        text = model.encode_text(batch.input_ids, batch.attention_mask).tokens
        others = text.select(torch.arange(len(samples)).roll(-1))
        for kind, own in (('matched', text), ('mismatched', others)):
            for name, values in describe_pairs(model, image, own).items():
                sums[kind][name].append(values)
        similarity = model.relate(image, text).similarity[:, 1:, 1:]
        anchors = anchor_mask(similarity, position.delta).unflatten(1, image.grid_size)
        for row, ids in enumerate(batch.input_ids[:, 1:]):
            words = tokenizer.convert_ids_to_tokens(ids[batch.attention_mask[row, 1:]].tolist())
            own = things.get(int(batch.image_ids[row]), [])
            side = batch.images.shape[-1] // image.grid_size[1]
            on_things += anchors_on_things(anchors[row], words, own, side)
    means = {
        kind: {name: float(torch.cat(parts).mean()) for name, parts in found.items()}
        for kind, found in sums.items()
    }
    return means, torch.tensor(on_things).mean(0).tolist() if on_things else []


def main() -> None:
    """Prints the table."""
    args = parse_args()
    means, on_things = measure(args)
    table = Table(title=f'Anchors of {args.checkpoint}')
    for heading in ('', 'matched', 'mismatched'):
        table.add_column(heading, justify='right' if heading else 'left')
    for name in means['matched']:
        table.add_row(name.replace('_', ' '), *(f'{own[name]:.3f}' for own in means.values()))
    if on_things:
        table.add_section()
        for what, share in zip(('that show its thing', 'elsewhere'), on_things, strict=True):
            table.add_row(f'anchors of a word among patches {what}', f'{share:.3f}', '')
    Console(width=100).print(table)


if __name__ == '__main__':
    run_or_explain(main)

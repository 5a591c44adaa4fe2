"""Deletes the patches that explain a match, best first, and measures how fast the match is lost.

    python tools/analysis/deletion_curves.py configs/acerpe/pretrain_shapes.py \\
        work_dirs/pretrain_shapes/epoch_9.pth --out work_dirs/pretrain_shapes/deletion.json

Each test image is shown with its first caption. A map of the caption ranks the patches; more and
more of them get the mean colour of the image, and the image is encoded and matched again. The area
is the mean of the probability of a match over the share of deleted patches: an explanation that
finds what the match rests on has a smaller one than patches deleted in random order. The report of
a run draws the curves of the file deletion.json in its folder.
"""

import argparse
from collections import defaultdict
from pathlib import Path

import torch
from rich.console import Console
from scipy import stats
from torch import Tensor, nn

from xmodal.ablation.paired import LEVEL
from xmodal.apis import load_model
from xmodal.benchmark import make_parser, make_table
from xmodal.build_functions import find_component
from xmodal.engine.command_line import at_least
from xmodal.engine.errors import ConfigError, run_or_explain
from xmodal.engine.launch import read_config
from xmodal.evaluation.first_captions import encode_first_captions
from xmodal.evaluation.queries import CHECKPOINT
from xmodal.files import require_new, write_json
from xmodal.registry import DATASETS, FUNCTIONS
from xmodal.structures import Regions, Tokens
from xmodal.visualization.anchors import similarity_map
from xmodal.visualization.grad_cam import grad_cam, layer_name

RANDOM = 'random order'


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = make_parser(__doc__)
    parser.add_argument('config', help="config of a model with a head 'itm'")
    parser.add_argument('checkpoint')
    parser.add_argument('--images', type=at_least(2), default=200, help='number of test images')
    parser.add_argument('--steps', type=at_least(1), default=9, help='steps from none to all')
    parser.add_argument('--out', type=Path, help='file to write the mean curves to')
    return parser.parse_args()


def caption_maps(model: nn.Module, image: Tokens, text: Tokens) -> dict[str, Tensor]:
    """Maps of a caption by name, (B, M): Grad-CAM of each layer, and the mean of S (Eq. 3)."""
    depth = model.backbone.fusion.depth
    maps = {
        f'Grad-CAM, {layer_name(depth, layer)}': grad_cam(model, image, text, layer)[1].flatten(1)
        for layer in range(depth)
    }
    if model.backbone.position.has_similarities:
        similarity = similarity_map(model, image, text)
        maps['similarity S, mean of the words'] = similarity.flatten(1)
    return maps


@torch.no_grad()
def deletion_curve(
    model: nn.Module, images: Tensor, text: Tokens, order: Tensor, steps: int
) -> Tensor:
    """The probabilities of a match while patches are deleted.

    Args:
        model: in eval mode.
        images: (B, 3, H, W), a square grid of patches.
        text: encoded captions, one an image.
        order: patches, those deleted first in front, (B, M).
        steps: number of steps from none to all.

    Returns:
        (B, 1 + steps).
    """
    batch, count = order.shape
    side = round(count**0.5)
    mean = images.mean((2, 3), keepdim=True)
    rank = order.argsort(1).view(batch, 1, side, side)
    size = images.shape[-1] // side
    rank = rank.repeat_interleave(size, 2).repeat_interleave(size, 3)
    pairs = torch.arange(batch, device=images.device)[:, None].expand(-1, 2)
    curve = []
    for step in range(steps + 1):
        shown = torch.where(rank < round(count * step / steps), mean, images)
        logits = model.match_logits(model.encode_image(shown).tokens, text, pairs)
        curve.append(logits.softmax(1)[:, 1])
    return torch.stack(curve, 1)


def area(curve: Tensor) -> Tensor:
    """The area under curves over the share of deleted patches, (B, 1 + steps) to (B,)."""
    return torch.trapezoid(curve, dx=1 / (curve.shape[1] - 1), dim=1)


def interval(values: Tensor) -> tuple[float, float]:
    """The mean of values, one of each image, (images,), and half of its 95 % interval."""
    count = len(values)
    quantile = float(stats.t.ppf(1 - LEVEL / 2, count - 1))
    return float(values.mean()), quantile * float(values.std()) / count**0.5


@torch.no_grad()
def measure(args: argparse.Namespace) -> dict[str, Tensor]:
    """The curves of each image, (images, 1 + steps), by the name of what ranks the patches."""
    config = read_config(args.config, 'test_dataloader')
    model = load_model(config, args.checkpoint)
    if model.matching_head is None:
        raise ConfigError(f"{args.config}: model.heads has no 'itm', so that nothing is explained")
    dataset = DATASETS.build(config.test_dataloader.dataset)
    collate = find_component(config.test_dataloader.collate_fn.type, FUNCTIONS)
    generator = torch.Generator().manual_seed(0)
    curves = defaultdict(list)
    images = range(min(args.images, len(dataset)))
    for batch, _, image, text in encode_first_captions(model, dataset, images, collate, 'images'):
        if isinstance(batch.images, Regions):
            raise ConfigError(
                f'{args.config}: test_dataloader.dataset gives regions, which have no patch to '
                'delete; expected images, as of PackImageText'
            )
        maps = caption_maps(model, image, text)
        maps[RANDOM] = torch.rand(next(iter(maps.values())).shape, generator=generator)
        for name, values in maps.items():
            order = values.argsort(1, descending=True).to(batch.images.device)
            curve = deletion_curve(model, batch.images, text, order, args.steps)
            curves[name].append(curve.cpu())
    return {name: torch.cat(parts) for name, parts in curves.items()}


def main() -> None:
    """Prints the table, and writes the curves."""
    args = parse_args()
    if args.out:
        require_new('--out', args.out)
    curves = measure(args)
    areas = {name: area(of_images) for name, of_images in curves.items()}
    heading = 'minus random, 95 % interval'
    table = make_table(f'Deletion, {args.checkpoint}', '', 'area', heading)
    for name, values in areas.items():
        mean, margin = interval(values - areas[RANDOM])
        cell = f'{mean:.3f} ± {margin:.3f}' if name != RANDOM else ''
        table.add_row(name, f'{float(values.mean()):.3f}', cell)
    Console(width=100).print(table)
    if args.out:
        means = {name: x.mean(0).tolist() for name, x in curves.items()}
        write_json(args.out, {CHECKPOINT: Path(args.checkpoint).name, **means})


if __name__ == '__main__':
    run_or_explain(main)

"""Makes image-text pairs of a classifier: what it knows of each class, and the class's name.

    python tools/dataset_converters/class_names.py configs/acerpe/pretrain_flickr8k_queue.py \\
        data/zeroshot/imagenet_classes.json --out data/imagenet_names

An ImageNet CNN comes with a vector of weights for each of its classes. The features of a class are
those of the mean photograph, moved along this vector, as far as photographs are from their mean; no
photograph of the class is needed. The mean is that of the first store in the config. The folder
gets ``regions``, a region store, and ``train.json``, in ALBEF's format: a config takes both beside
those of photographs.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import normalize
from tqdm import tqdm

from xmodal.datasets.albef_writer import write_albef_json
from xmodal.datasets.detected_image import DetectedImage
from xmodal.datasets.region_store import RegionStore, open_stores
from xmodal.datasets.region_writer import RegionStoreWriter
from xmodal.engine.command_line import ShowDefaults, at_least
from xmodal.engine.components import find_load_regions
from xmodal.engine.errors import run_or_explain
from xmodal.engine.launch import read_config
from xmodal.engine.loops.zero_shot import read_templates
from xmodal.fields import Fields
from xmodal.files import read_json, reads, require_new
from xmodal.registry import MODELS, register_all


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=ShowDefaults
    )
    parser.add_argument('config', type=Path, help='a config with LoadRegions(store, extractor)')
    parser.add_argument('names', type=Path, help='JSON list of names, in the order of the classes')
    parser.add_argument('--out', type=Path, required=True, help='new folder, below data_root')
    parser.add_argument(
        '--templates', default='configs/_base_/prompts/photographs.json', help='of captions'
    )
    parser.add_argument(
        '--captions', type=at_least(1), default=5, help='of a class: by the first templates'
    )
    return parser.parse_args()


@reads('a list of names')
def read_names(file: Path) -> list[str]:
    """The name of each class."""
    return Fields({'the content': read_json(file)}).texts('the content')


def mean_cells(store: RegionStore) -> tuple[Tensor, float]:
    """The mean photograph, and how far photographs are from it.

    Returns:
        The values of each feature over the cells, largest first, mean of all photographs, (M, F);
        and the mean distance between the pooled features of a photograph and those of the mean.

    Raises:
        ValueError: when photographs differ in their number of cells, or features are negative.
    """
    cells, pooled = 0, []
    for image in tqdm(store.images(), 'mean photograph', len(store)):
        features = torch.from_numpy(image.features).float()
        if features.min() < 0 or (pooled and features.shape != cells.shape):
            raise ValueError(
                f'{store.folder}: {image.image_id} has {len(features)} regions, the smallest value '
                f'is {features.min():g}: expected grid features of a CNN, as many cells of every '
                'photograph and no negative value'
            )
        cells = cells + features.sort(0, descending=True).values
        pooled.append(features.mean(0))
    cells /= len(pooled)
    distances = (torch.stack(pooled) - cells.mean(0)).norm(dim=1)
    return cells, float(distances.mean())


def class_cells(weights: Tensor, cells: Tensor, distance: float) -> Iterator[Tensor]:
    """The cells of each class, (M, F): their mean is that of ``cells``, moved and not negative.

    Args:
        weights: of the classifier, (C, F).
        cells: of the mean photograph, (M, F).
        distance: how far the mean of the cells is moved.
    """
    mean = cells.mean(0)
    for direction in normalize(weights - weights.mean(0), dim=1):
        moved = (mean + distance * direction).clamp(min=0)
        yield cells * moved / mean.clamp(min=1e-6)


def main() -> None:
    """Writes the pairs."""
    args = parse_args()
    require_new('--out', args.out / 'train.json')
    register_all()
    section = find_load_regions(read_config(args.config))
    names, templates = read_names(args.names), read_templates(args.templates)[: args.captions]
    weights = MODELS.build(section['extractor']).class_weights()
    if len(names) != len(weights):
        raise ValueError(f'{args.names} has {len(names)} names, and the CNN {len(weights)} classes')
    stores = section['store']
    store = open_stores(stores if isinstance(stores, str) else stores[0])[0]
    first = next(store.images())
    sources = {'extractor': section['extractor'], 'names': str(args.names)}
    with RegionStoreWriter(args.out / 'regions', sources, 'float16') as writer:
        for index, cells in enumerate(class_cells(weights, *mean_cells(store))):
            image_id = f'{args.out.name}_{index:04}'
            writer.append(
                DetectedImage(image_id, first.width, first.height, cells.numpy(), first.boxes)
            )
        writer.finish()
    records = (
        {
            'image': f'{args.out.name}/{args.out.name}_{index:04}.jpg',
            'caption': [template.replace('{}', name) for template in templates],
        }
        for index, name in enumerate(names)
    )
    write_albef_json(args.out / 'train.json', records, len(names))
    print(f'{args.out}: {len(names)} classes with {len(templates)} captions each')


if __name__ == '__main__':
    run_or_explain(main)

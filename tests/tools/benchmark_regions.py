"""LXMERT's stores and SCAN's files of regions, of the scenes of the embedded world."""

from pathlib import Path

import numpy as np
from scene_names import COCO, Scenes, coco_name, link, statement_images

from xmodal.datasets.region_store import RegionStore
from xmodal.datasets.region_writer import RegionStoreWriter

REGIONS, FEATURES = 36, 2048


def write_regions(data: Path, scenes: Scenes) -> None:
    """``regions/{mscoco,vg_gqa,nlvr2}`` and ``{f30k,coco}_precomp``."""
    write_stores(data / 'regions', scenes)
    write_precomp(data / 'f30k_precomp', scenes, 'test')
    write_precomp(data / 'coco_precomp', scenes, 'testall')


def write_stores(folder: Path, scenes: Scenes) -> None:
    """The stores of the images of COCO, of Visual Genome and of NLVR2; 8 regions an image."""
    examples = [
        example
        for split in ('train', 'dev', 'test1')
        for example in scenes.read_lines(f'nlvr2/{split}.json')
    ]
    stems = {
        'mscoco': {
            coco_name(number, subset): stem
            for stem, number in scenes.numbers.items()
            for subset in COCO.values()
        },
        'vg_gqa': {str(number): stem for stem, number in scenes.numbers.items()},
        'nlvr2': {
            name: Path(file).stem
            for example in examples
            for name, file in statement_images(example).items()
        },
    }
    store = RegionStore(scenes.world / 'regions/store')
    images = {image.image_id: image for image in store.images()}
    for name, by_id in stems.items():
        with RegionStoreWriter(folder / name, name, 'float16') as writer:
            for image_id, stem in by_id.items():
                features = widened(images[stem].features)
                writer.append(images[stem]._replace(image_id=image_id, features=features))
            writer.finish()


def write_precomp(folder: Path, scenes: Scenes, test: str) -> None:
    """Features, captions and ids; the regions are repeated to 36."""
    world = scenes.world / 'precomp'
    link(folder / 'vocab.json', world / 'vocab.json')
    for split, name in (('train', 'train'), ('dev', 'dev'), ('test', test)):
        for part in ('caps.txt', 'ids.txt'):
            link(folder / f'{name}_{part}', world / f'{split}_{part}')
        features = np.load(world / f'{split}_ims.npy')
        missing = REGIONS - features.shape[1]
        features = np.pad(features, [(0, 0), (0, missing), (0, 0)], 'wrap')
        np.save(folder / f'{name}_ims.npy', widened(features))


def widened(features: np.ndarray) -> np.ndarray:
    """Features (…, F), repeated to the width of the papers'."""
    missing = [(0, 0)] * (features.ndim - 1) + [(0, FEATURES - features.shape[-1])]
    return np.pad(features, missing, 'wrap')

"""From the files of images to a normalised batch: ours, and what others would use."""

import json
import sys
import tempfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType

import torch
from mmengine.config import Config
from mmengine.dataset import Compose
from torch import Tensor
from torchvision.io import ImageReadMode, decode_image, read_file
from torchvision.transforms import InterpolationMode, v2

from xmodal.benchmark.script import write_placeholder_vocabulary
from xmodal.datasets.collate import stack_images
from xmodal.errors import ConfigError
from xmodal.registry import MODELS

MEAN, STD = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
SCALE = (0.2, 1.0)
Pipeline = Callable[[list[str]], Tensor]


def of_config(config: Config) -> Pipeline:
    """The pipeline of a pre-training config, and what its model does with the images of a batch."""
    transforms = Compose(config.train_dataloader.dataset.pipeline)
    with tempfile.TemporaryDirectory() as folder:
        tokenizer = dict(pretrained=write_placeholder_vocabulary(folder))
        own = dict(config.model.data_preprocessor, tokenizer=tokenizer)
        prepare = MODELS.build(own).prepare_images
    other = {'text': '', 'image_id': 0, 'sample_index': 0}

    def run(files: list[str]) -> Tensor:
        samples = [transforms(dict(other, img_path=file)) for file in files]
        return prepare(stack_images(samples)['inputs'])

    return run


def torchvision_v2(size: int) -> Pipeline:
    """What torchvision has: its decoder and its own RandAugment, with ALBEF's numbers."""
    steps = v2.Compose(
        [
            v2.RandomResizedCrop(size, SCALE, interpolation=InterpolationMode.BICUBIC),
            v2.RandomHorizontalFlip(),
            v2.RandAugment(2, 7),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize(MEAN, STD),
        ]
    )

    def run(files: list[str]) -> Tensor:
        images = (decode_image(read_file(file), ImageReadMode.RGB) for file in files)
        return torch.stack([steps(image) for image in images])

    return run


def albef(folder: Path, files: list[str], size: int) -> Pipeline:
    """The data set of ALBEF's public code, as its Pretrain.py makes it.

    Args:
        folder: a checkout.
        files: images that will be asked for.
        size: side of the result, in pixels.

    Raises:
        ConfigError: if the folder has no such code.
    """
    if not (folder / 'dataset' / 'randaugment.py').is_file():
        raise ConfigError(f'--peer {folder} has no dataset/randaugment.py: expected ALBEF')
    # Its package also imports the evaluation of grounding, which needs Java and is not used here.
    unused = ModuleType('refTools.evaluation.refEvaluation')
    unused.RefEvaluation = None
    sys.modules.update(dict.fromkeys(['refTools', 'refTools.evaluation'], ModuleType('refTools')))
    sys.modules[unused.__name__] = unused
    sys.path.insert(0, str(folder))
    create_dataset = import_module('dataset').create_dataset

    with tempfile.TemporaryDirectory() as temporary:
        list_of_pairs = Path(temporary, 'pairs.json')
        list_of_pairs.write_text(json.dumps([{'image': file, 'caption': ''} for file in files]))
        config = {'train_file': [str(list_of_pairs)], 'image_res': size}
        pairs = create_dataset('pretrain', config)
    places = {file: place for place, file in enumerate(files)}
    return lambda files: torch.stack([pairs[places[file]][0] for file in files])

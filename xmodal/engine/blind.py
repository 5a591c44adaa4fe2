"""Tests with one modality hidden: what is left of a figure was never due to it."""

from collections.abc import Callable

import torch
from mmengine.model import BaseDataPreprocessor
from mmengine.runner import BaseLoop
from torch import Tensor
from torch.utils.data import Dataset

from xmodal.engine.loops.evaluation import single_loops
from xmodal.errors import ConfigError
from xmodal.structures import Regions


def blind(loop: BaseLoop, way: str, preprocessor: BaseDataPreprocessor) -> None:
    """Hides a modality from the test of a loop, and of the loops in it.

    Args:
        loop: a test loop; its data loaders are changed.
        way: 'text': every text is empty; 'image': every image has one colour, or one region
            without features; 'shuffle': every sample has the image of another one.
        preprocessor: of the model; pixels get the mean that it subtracts.

    Raises:
        ConfigError: when there are pixels and no mean.
    """
    pixels = getattr(preprocessor, 'mean', None)
    for dataloader in {part.dataloader for _, part in single_loops(loop)}:
        collate = dataloader.collate_fn
        has_no_colour = way == 'image' and pixels is None
        if has_no_colour and isinstance(dataloader.dataset[0]['inputs'], Tensor):
            raise ConfigError(
                '--blind image gives images the colour data_preprocessor.mean, which '
                f'{type(preprocessor).__name__} does not have: give it a mean, (3, 1, 1) in 0…255'
            )
        dataloader.collate_fn = BlindCollate(collate, dataloader.dataset, way, pixels)
        if way == 'text' and hasattr(dataloader.dataset, 'class_names'):  # texts of zero-shot tests
            dataloader.dataset.class_names = [''] * len(dataloader.dataset.class_names)


class BlindCollate:
    """Hides a modality in the samples of a batch, then collates them.

    Args:
        collate: the collate function.
        dataset: for the images of other samples.
        way: see :func:`blind`.
        pixels: the colour of hidden images, in 0…255, (3, 1, 1); None for regions.
    """

    def __init__(
        self, collate: Callable, dataset: Dataset, way: str, pixels: Tensor | None
    ) -> None:
        self.collate, self.dataset, self.way = collate, dataset, way
        self.pixels = None if pixels is None else pixels.detach().cpu().round().to(torch.uint8)
        order = torch.randperm(len(dataset), generator=torch.Generator().manual_seed(0))
        self.next_of = dict(zip(order.tolist(), order.roll(-1).tolist(), strict=True))

    def __call__(self, samples: list[dict]) -> dict:
        """The batch without the modality."""
        if self.way == 'text':
            for sample in samples:
                text = sample['data_samples'].text
                sample['data_samples'].text = '' if isinstance(text, str) else [''] * len(text)
        elif self.way == 'image':
            samples = [{**sample, 'inputs': self._hidden(sample['inputs'])} for sample in samples]
        else:
            samples = [{**sample, 'inputs': self._other(sample)['inputs']} for sample in samples]
        return self.collate(samples)

    def _hidden(self, inputs: Tensor | Regions | list[Regions]) -> Tensor | Regions | list[Regions]:
        """An image, or the images of a sample, that say nothing."""
        if isinstance(inputs, Regions):
            return inputs.hidden()
        if isinstance(inputs, list):
            return [self._hidden(image) for image in inputs]
        return self.pixels.expand(inputs.shape).clone()

    def _other(self, sample: dict) -> dict:
        """The next sample, in an order drawn once, that has another image.

        Raises:
            ValueError: when all samples have the same image.
        """
        index = start = sample['data_samples'].sample_index
        while (index := self.next_of[index]) != start:
            other = self.dataset[index]
            if other['data_samples'].image_id != sample['data_samples'].image_id:
                return other
        raise ValueError('--blind shuffle: all samples of the test set have the same image')

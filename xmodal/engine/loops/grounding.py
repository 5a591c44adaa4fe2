"""Evaluation of weakly supervised grounding."""

from pathlib import Path

import torch
from mmengine.dist import is_main_process
from mmengine.runner import Runner
from rich.console import Console
from rich.table import Table
from torch import nn
from torch.nn.functional import interpolate
from torch.utils.data import DataLoader

from xmodal.datasets.image_file import read_image, write_image
from xmodal.engine.loops.evaluation import EvaluationLoop
from xmodal.engine.wrappers import unwrap
from xmodal.evaluation.grounding import box_tensor, choose_box
from xmodal.registry import LOOPS
from xmodal.structures import DataSample
from xmodal.visualization.anchors import similarity_map
from xmodal.visualization.boxes import draw_grounding
from xmodal.visualization.grad_cam import grad_cam, layer_index


@LOOPS.register_module()
class GroundingLoop(EvaluationLoop):
    """Grounds expressions: chooses the proposal with the most heat of a map.

    The map of the whole expression is resized to the size of the image, bicubic, as in ALBEF.

    Args:
        runner: the runner.
        dataloader: of a :class:`xmodal.datasets.referring.ReferringDataset` in test mode.
        evaluator: config of the metric, ``GroundingMetric``.
        layer: index of the fusion layer whose attention is used; -1 is the last one, None the third
            of six, as in ALBEF, or the layer at the same relative depth.
        maps: 'grad_cam': Grad-CAM of the matching score, as in ALBEF; 'similarity': how similar the
            words are to each patch, by which ACE-RPE finds anchors (Eq. 3), after a training with
            an :class:`AnchorContrastHead`.
        save_images: a new folder for an image of every prediction, ``SENT_ID.jpg``.

    Raises:
        FileExistsError: when that folder exists already.
        ValueError: when the model has no such layer, or no such maps.
    """

    def __init__(
        self,
        runner: Runner,
        dataloader: DataLoader | dict,
        evaluator: dict,
        layer: int | None = None,
        maps: str = 'grad_cam',
        save_images: str | None = None,
    ) -> None:
        super().__init__(runner, dataloader, evaluator)
        if maps not in ('grad_cam', 'similarity'):
            raise ValueError(f"test_cfg.maps={maps!r}, expected 'grad_cam' or 'similarity'")
        self.maps = maps
        self.layer = layer_index(unwrap(runner.model).backbone.fusion.depth, layer)
        self.image_folder = None
        if save_images:
            self.image_folder = Path(save_images)
            if is_main_process():
                self.image_folder.mkdir(parents=True)

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """Grounds every expression, prints a table, and returns the metrics."""
        for batch in self.batches('grounding'):
            samples = self.predict(model, batch)
            self.evaluator.process(samples, batch)
            if self.image_folder:
                for sample in samples:
                    self._save_image(sample)
        metrics = self.evaluator.evaluate(len(self.dataloader.dataset))
        if is_main_process():
            print_metrics(metrics)
        return metrics

    def predict(self, model: nn.Module, batch: dict) -> list[DataSample]:
        """The samples of a batch with ``heat``, (H, W), and ``chosen``, an index of proposals."""
        prepared = model.data_preprocessor(batch, False)
        inputs, samples = prepared['inputs'], prepared['data_samples']
        with torch.no_grad():
            image = model.encode_image(inputs.images).tokens
            text = model.encode_text(inputs.input_ids, inputs.attention_mask).tokens
            if self.maps == 'similarity':
                maps = similarity_map(model, image, text)
        if self.maps == 'grad_cam':
            _, maps = grad_cam(model, image, text, self.layer)
        for sample, heat in zip(samples, maps.float().cpu(), strict=True):
            resized = interpolate(heat[None, None], sample.size, mode='bicubic')
            sample.heat = resized[0, 0]
            sample.chosen = choose_box(sample.heat, box_tensor(sample.proposals))
        return samples

    def _save_image(self, sample: DataSample) -> None:
        """Writes the heat over the image, with the chosen and the true box."""
        image = read_image(sample.image_path)
        drawn = draw_grounding(
            image, sample.heat.numpy(), sample.proposals[sample.chosen], sample.box, sample.text
        )
        write_image(self.image_folder / f'{sample.sent_id}.jpg', drawn)


def print_metrics(metrics: dict[str, float]) -> None:
    """Prints a table with a row for each split; a plug-in's metrics are in the log alone."""
    table = Table(title='Grounding, in percent')
    for heading in ('split', 'accuracy', 'pointing game', 'random proposal'):
        table.add_column(heading, justify='left' if heading == 'split' else 'right')
    for split in (name.removesuffix('/chance') for name in metrics if name.endswith('/chance')):
        names = ('accuracy', 'pointing', 'chance')
        table.add_row(split, *(f'{metrics[f"{split}/{name}"]:.1f}' for name in names))
    Console(width=100).print(table)

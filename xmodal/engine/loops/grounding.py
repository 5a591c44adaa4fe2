"""Evaluation of weakly supervised grounding."""

from pathlib import Path

import cv2
import torch
from mmengine.dist import is_main_process
from mmengine.runner import Runner
from rich.console import Console
from rich.table import Table
from torch import nn
from torch.nn.functional import interpolate
from torch.utils.data import DataLoader
from tqdm import tqdm

from xmodal.engine.loops.evaluation import EvaluationLoop
from xmodal.evaluation.grounding import as_tensor, choose_box
from xmodal.registry import LOOPS
from xmodal.structures import DataSample
from xmodal.visualization.boxes import draw_grounding
from xmodal.visualization.grad_cam import grad_cam


@LOOPS.register_module()
class GroundingLoop(EvaluationLoop):
    """Finds what expressions name: the proposal with the most heat of a Grad-CAM map.

    The map of the whole expression is made larger to the size of the image, bicubic, as ALBEF.

    Args:
        runner: the runner.
        dataloader: of a :class:`xmodal.datasets.referring.ReferringDataset` in test mode.
        evaluator: config of the metric, ``GroundingMetric``.
        layer: of the fusion encoder, whose attention is looked at; None for its third of six, as
            ALBEF, or the like.
        save_pictures: a new folder for a picture of every prediction, ``SENT_ID.jpg``.

    Raises:
        FileExistsError: when that folder is there already.
    """

    def __init__(
        self,
        runner: Runner,
        dataloader: DataLoader | dict,
        evaluator: dict,
        layer: int | None = None,
        save_pictures: str | None = None,
    ) -> None:
        super().__init__(runner, dataloader)
        self.evaluator = runner.build_evaluator(evaluator)
        self.layer = layer
        self.pictures = None
        if save_pictures:
            self.pictures = Path(save_pictures)
            if is_main_process():
                self.pictures.mkdir(parents=True)

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """Grounds every expression, prints a table, and returns the metrics."""
        for batch in tqdm(self.dataloader, 'grounding', disable=not is_main_process()):
            samples = self.predict(model, batch)
            self.evaluator.process(samples, batch)
            if self.pictures:
                for sample in samples:
                    self._save_picture(sample)
        metrics = self.evaluator.evaluate(len(self.dataloader.dataset))
        if is_main_process():
            print_metrics(metrics)
        return metrics

    def predict(self, model: nn.Module, batch: dict) -> list[DataSample]:
        """The samples of a batch with ``heat``, (H, W), and ``chosen``, a place in proposals."""
        prepared = model.data_preprocessor(batch, False)
        inputs, samples = prepared['inputs'], prepared['data_samples']
        with torch.no_grad():
            image = model.encode_image(inputs.images).tokens
            text = model.encode_text(inputs.input_ids, inputs.attention_mask).tokens
        _, maps = grad_cam(model, image, text, self.layer)
        for sample, heat in zip(samples, maps.float().cpu(), strict=True):
            large = interpolate(heat[None, None], sample.size, mode='bicubic')
            sample.heat = large[0, 0]
            sample.chosen = choose_box(sample.heat, as_tensor(sample.proposals))
        return samples

    def _save_picture(self, sample: DataSample) -> None:
        """Writes the heat over the image, with the chosen and the true box."""
        image = cv2.imread(sample.image_path)[..., ::-1]
        picture = draw_grounding(
            image, sample.heat.numpy(), sample.proposals[sample.chosen], sample.box, sample.text
        )
        cv2.imwrite(str(self.pictures / f'{sample.sent_id}.jpg'), picture[..., ::-1])


def print_metrics(metrics: dict[str, float]) -> None:
    """Prints a table, a row a split."""
    table = Table(title='Grounding, in percent')
    for heading in ('split', 'accuracy', 'pointing game', 'random proposal'):
        table.add_column(heading, justify='left' if heading == 'split' else 'right')
    for split in dict.fromkeys(name.rpartition('/')[0] for name in metrics):
        shown = [f'{metrics[f"{split}/{name}"]:.1f}' for name in ('accuracy', 'pointing', 'chance')]
        table.add_row(split, *shown)
    Console(width=100).print(table)

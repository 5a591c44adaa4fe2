"""Evaluation by minimal pairs: which of a few texts is true of an image?"""

import torch
from mmengine.dist import is_main_process
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

from xmodal.engine.loops.evaluation import EvaluationLoop, unit_embedding_of
from xmodal.registry import LOOPS
from xmodal.structures import ImageTextBatch


@LOOPS.register_module()
class MinimalPairLoop(EvaluationLoop):
    """Scores each image with its own texts, by vectors and by fusion.

    ``vectors`` are the cosines of the embeddings. ``fusion`` are the matching scores of the ITM
    head, where the model has one. The data set is a
    :class:`xmodal.datasets.minimal_pairs.MinimalPairDataset`, the metric a ``SkillMetric`` or the
    like.
    """

    @torch.no_grad()
    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """Scores all texts, prints a table, and returns the metrics."""
        for batch in self.batches('scoring'):
            prepared = model.data_preprocessor(batch, False)
            samples = prepared['data_samples']
            counts = [len(sample.text) for sample in samples]
            for name, scores in score_texts(model, prepared['inputs'], counts).items():
                for sample, of_sample in zip(samples, scores.cpu().split(counts), strict=True):
                    sample.set_field(of_sample, name)
            self.evaluator.process(samples, batch)
        metrics = self.evaluator.evaluate(len(self.dataloader.dataset))
        if is_main_process():
            print_metrics(metrics)
        return metrics


def score_texts(model: nn.Module, inputs: ImageTextBatch, counts: list[int]) -> dict[str, Tensor]:
    """The scores of the texts of each image, by ``vectors`` and ``fusion``, (T,) each.

    Args:
        model: in evaluation mode.
        inputs: B images with T texts, those of an image adjacent.
        counts: number of texts of each image.

    Raises:
        ConfigError: when the model gives no embeddings.
    """
    image = model.encode_image(inputs.images)
    text = model.encode_text(inputs.input_ids, inputs.attention_mask)
    of_images, of_texts = (unit_embedding_of(x, model, 'MinimalPairLoop') for x in (image, text))
    texts = torch.arange(sum(counts), device=of_texts.device)
    rows = texts.new_tensor(counts)
    rows = torch.repeat_interleave(torch.arange(len(counts), device=texts.device), rows)
    scores = {'vectors': (of_images[rows] * of_texts).sum(-1)}
    if model.matching_head is not None:
        scores['fusion'] = model.match(image.tokens, text.tokens, torch.stack([rows, texts], 1))
    return scores


def print_metrics(metrics: dict[str, float]) -> None:
    """Prints a table with a row for each figure, and a column for each way to score."""
    by_name: dict[str, dict[str, float]] = {}
    for key, value in metrics.items():
        way, _, name = key.rpartition('/')
        by_name.setdefault(name, {})[way] = value
    ways = list(dict.fromkeys(key.rpartition('/')[0] for key in metrics))
    table = Table(title='Minimal pairs, in percent')
    for heading in ('', *ways):
        table.add_column(heading.replace('/', ', '), justify='right' if heading else 'left')
    for name, values in by_name.items():
        table.add_row(name, *(f'{values[way]:.1f}' if way in values else '' for way in ways))
    Console(width=100).print(table)

"""Zero-shot classification: images beside the names of classes in sentences."""

from pathlib import Path

import torch
from mmengine.dist import is_main_process
from mmengine.runner import Runner
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn
from torch.nn.functional import normalize
from torch.utils.data import DataLoader
from tqdm import tqdm

from xmodal.datasets.text import clean_caption
from xmodal.engine.loops.evaluation import EvaluationLoop
from xmodal.files import read_json
from xmodal.registry import LOOPS, METRICS


@LOOPS.register_module()
class ZeroShotLoop(EvaluationLoop):
    """Classifies images by the vectors of prompts, as CLIP does (its Sec. 3.1).

    The vector of a class is the normalised mean of the vectors of its name in all templates. For
    any model with ``encode_image`` and ``encode_text`` whose results have a ``vector``.

    Args:
        runner: the runner.
        dataloader: of a data set of classes, such as ``ClassFolderDataset``.
        evaluator: config of the metric, ``ZeroShotMetric``.
        templates: a JSON file, a list of sentences with ``{}`` where the name goes.
        text_batch: prompts that are encoded at once.

    Raises:
        FileNotFoundError: when the file is not there.
        ValueError: when it is of another layout.
    """

    def __init__(
        self,
        runner: Runner,
        dataloader: DataLoader | dict,
        evaluator: dict,
        templates: str,
        text_batch: int = 256,
    ) -> None:
        self.templates = read_templates(templates)
        super().__init__(runner, dataloader)
        self.metric = METRICS.build(evaluator)
        self.text_batch = text_batch

    @torch.no_grad()
    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """Classifies all images, prints a table, and returns the metrics."""
        dataset = self.dataloader.dataset
        classes = class_vectors(model, dataset.class_names, self.templates, self.text_batch)
        for batch in tqdm(self.dataloader, 'classifying', disable=not is_main_process()):
            data = model.data_preprocessor(batch, False)
            vectors = model.encode_image(data['inputs'].images).embedding.float()
            for sample, scores in zip(data['data_samples'], vectors @ classes.T, strict=True):
                sample.scores = scores.cpu()
            self.metric.process(batch, [sample.to_dict() for sample in data['data_samples']])
        metrics = self.metric.evaluate(len(dataset))
        if is_main_process():
            print_metrics(metrics, len(dataset), len(classes), len(self.templates))
        return metrics


def read_templates(file: str) -> list[str]:
    """Sentences with a place for a name.

    Raises:
        FileNotFoundError: when there is no such file.
        ValueError: when it is no list of sentences with one ``{}`` each.
    """
    if not Path(file).is_file():
        raise FileNotFoundError(
            f'templates={file} is not there (relative to {Path.cwd()}): a JSON list of sentences '
            'such as "a photo of a {}."; configs/_base_/prompts holds some'
        )
    templates = read_json(file)
    is_list = isinstance(templates, list) and templates
    if not is_list or any(not isinstance(t, str) or t.count('{}') != 1 for t in templates):
        raise ValueError(
            f'{file} is no JSON list of sentences with one {{}} each, where the name of a class '
            'goes: ["a photo of a {}.", …]'
        )
    return templates


def class_vectors(
    model: nn.Module, names: list[str], templates: list[str], text_batch: int = 256
) -> Tensor:
    """A normalised vector a class, on the model's device, (C, d).

    Prompts are cleaned as the captions that models are trained with.
    """
    prompts = [clean_caption(template.format(name)) for name in names for template in templates]
    vectors = []
    for first in range(0, len(prompts), text_batch):
        tokenized = model.data_preprocessor.tokenize(prompts[first : first + text_batch])
        vectors.append(model.encode_text(*tokenized).embedding.float())
    by_class = torch.cat(vectors).unflatten(0, (len(names), len(templates)))
    return normalize(normalize(by_class, dim=-1).mean(1), dim=-1)


def print_metrics(metrics: dict[str, float], images: int, classes: int, templates: int) -> None:
    """Prints a table beside chance."""
    table = Table(title=f'Zero-shot: {images} images, {classes} classes, {templates} templates')
    for heading in ('', 'top-1', 'top-5'):
        table.add_column(heading, justify='right' if heading else 'left')
    found = [next(v for name, v in metrics.items() if name.endswith(f'top{k}')) for k in (1, 5)]
    chance = [100 * min(1, k / classes) for k in (1, 5)]
    for label, values in (('found', found), ('chance', chance)):
        table.add_row(label, *(f'{value:.2f}' for value in values))
    Console(width=100).print(table)

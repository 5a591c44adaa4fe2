"""Zero-shot classification: images are compared with prompts of class names."""

from pathlib import Path

import torch
from mmengine.dist import is_main_process
from mmengine.runner import Runner
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn
from torch.nn.functional import normalize
from torch.utils.data import DataLoader

from xmodal.datasets.text import clean_caption
from xmodal.engine.loops.evaluation import EvaluationLoop, embedding_of
from xmodal.errors import ConfigError
from xmodal.files import read_json
from xmodal.packaged import find_file
from xmodal.registry import LOOPS

PROMPTS_AT_ONCE = 256


@LOOPS.register_module()
class ZeroShotLoop(EvaluationLoop):
    """Classifies images by the embeddings of prompts, as CLIP does (its Sec. 3.1).

    The embedding of a class is the normalised mean of the text embeddings of its name in all
    templates. It works for any model whose ``encode_image`` and ``encode_text`` return embeddings.

    Args:
        runner: the runner.
        dataloader: of a data set of classes, such as ``ClassFolderDataset``.
        evaluator: config of the metric, ``ZeroShotMetric``.
        templates: a JSON file, a list of sentences with ``{}`` in the place of the class name.
        max_words: of a prompt, as of captions in training; None leaves prompts unchanged.

    Raises:
        ConfigError: when the data set has no classes.
        FileNotFoundError: when the file does not exist.
        ValueError: when it has another layout.
    """

    def __init__(
        self,
        runner: Runner,
        dataloader: DataLoader | dict,
        evaluator: dict,
        templates: str,
        max_words: int | None = 30,
    ) -> None:
        self.templates = read_templates(templates)
        super().__init__(runner, dataloader, evaluator)
        dataset = self.dataloader.dataset
        if not hasattr(dataset, 'class_names'):
            raise ConfigError(
                f'ZeroShotLoop got a dataloader of {type(dataset).__name__}, which has no class '
                "names: give the loop a dataloader of its own, with dataset=dict(type='"
                "ClassFolderDataset', …)"
            )
        self.max_words = max_words

    @torch.no_grad()
    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """Classifies all images, prints a table, and returns the metrics."""
        dataset = self.dataloader.dataset
        classes = class_embeddings(model, dataset.class_names, self.templates, self.max_words)
        for batch in self.batches('classifying'):
            prepared = model.data_preprocessor(batch, False)
            inputs, samples = prepared['inputs'], prepared['data_samples']
            images = embedding_of(model.encode_image(inputs.images), model, 'ZeroShotLoop')
            for sample, scores in zip(samples, images @ classes.T, strict=True):
                sample.scores = scores.cpu()
            self.evaluator.process(samples, batch)
        metrics = self.evaluator.evaluate(len(dataset))
        if is_main_process():
            print_metrics(metrics, len(dataset), len(classes), len(self.templates))
        return metrics


def read_templates(file: str) -> list[str]:
    """Sentences with a placeholder for a class name.

    Raises:
        FileNotFoundError: when the file does not exist.
        ValueError: when it is not a list of sentences with one ``{}`` each.
    """
    file = find_file(file)
    if not file.is_file():
        raise FileNotFoundError(
            f'templates={file} does not exist (relative to {Path.cwd()}): expected a JSON list of '
            'sentences such as "a photo of a {}."; configs/_base_/prompts has examples'
        )
    templates = read_json(file)
    is_list = isinstance(templates, list) and templates
    if not is_list or any(not isinstance(t, str) or t.count('{}') != 1 for t in templates):
        raise ValueError(
            f'{file} is not a JSON list of sentences with one {{}} each, in the place of the class '
            'name: ["a photo of a {}.", …]'
        )
    return templates


def class_embeddings(
    model: nn.Module, names: list[str], templates: list[str], max_words: int | None = 30
) -> Tensor:
    """One normalised embedding per class, (C, d), on the model's device.

    Prompts are cleaned in the same way as captions in training.

    Raises:
        ConfigError: when the model gives no embeddings.
    """
    prompts = [
        clean_caption(template.replace('{}', name), max_words)
        for name in names
        for template in templates
    ]
    embeddings = []
    for start in range(0, len(prompts), PROMPTS_AT_ONCE):
        tokenized = model.data_preprocessor.tokenize(prompts[start : start + PROMPTS_AT_ONCE])
        embeddings.append(embedding_of(model.encode_text(*tokenized), model, 'ZeroShotLoop'))
    by_class = torch.cat(embeddings).unflatten(0, (len(names), len(templates)))
    return normalize(normalize(by_class, dim=-1).mean(1), dim=-1)


def print_metrics(
    metrics: dict[str, float], num_images: int, num_classes: int, num_templates: int
) -> None:
    """Prints a table of the accuracy and of chance; none for metrics of a plug-in alone."""
    accuracy = [
        next((v for name, v in metrics.items() if name.endswith(f'top{k}')), None) for k in (1, 5)
    ]
    if None in accuracy:
        return
    table = Table(
        title=f'Zero-shot: {num_images} images, {num_classes} classes, {num_templates} templates'
    )
    for heading in ('', 'top-1', 'top-5'):
        table.add_column(heading, justify='right' if heading else 'left')
    chance = [100 * min(1, k / num_classes) for k in (1, 5)]
    for label, values in (('accuracy', accuracy), ('chance', chance)):
        table.add_row(label, *(f'{value:.2f}' for value in values))
    Console(width=100).print(table)

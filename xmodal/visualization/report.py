"""The report of a run: one HTML page without external files."""

import json
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import jinja2
import numpy as np
from mmengine.config import Config
from torch import nn

from xmodal.datasets.base import evenly_spaced
from xmodal.visualization.charts import (
    draw_aucs,
    draw_curves,
    draw_deletion,
    draw_radar,
    draw_scales,
    read_scalars,
    select_curves,
    to_svg,
)
from xmodal.visualization.grad_cam import layer_name
from xmodal.visualization.heat_maps import FUNCTION_WORDS, Encode, draw_heat_maps
from xmodal.visualization.retrieval_examples import (
    first_text,
    image_to_text_example,
    text_to_image_example,
)
from xmodal.visualization.sketch import assign_words, draw_partitions, draw_words

EXAMPLES = 4  # queries shown for each direction


class Stage(NamedTuple):
    """A stage of the test: the prefix of its metrics, and its label in the table."""

    prefix: str
    label: str


def write_report(
    work_dir: Path,
    config: Config,
    model: nn.Module,
    rankings: dict,
    out: Path,
    encode: Encode | None = None,
    layer: int | None = None,
    skills: dict[str, float] | None = None,
    aucs: dict[str, list[float]] | None = None,
    deletion: dict[str, list[float]] | None = None,
    epochs: int | None = None,
) -> None:
    """Writes the report of a run.

    Args:
        work_dir: folder of the run, with its logs.
        config: config of the run.
        model: the trained model.
        rankings: saved by the test (``save_rankings``).
        out: file to write.
        encode: encodes image files and texts for the model; None for a data set of region
            features, which has no image files.
        layer: index of the fusion layer of Grad-CAM, see :func:`layer_index`.
        skills: metrics of ``SkillMetric``, for the radar; None for none.
        aucs: how well the maps of words find objects, for :func:`draw_aucs`; None for none.
        deletion: how fast a match is lost, for :func:`draw_deletion`; None for none.
        epochs: that the model was trained, fewer than the config's where the run stopped early;
            None if that is unknown.

    Raises:
        ValueError: if the model has no such layer, or a layer is given and there is no Grad-CAM.
    """
    shown_layer = _name_layer(model, encode, layer)
    curves = select_curves(read_scalars(work_dir))
    num_images = len(rankings['images'])
    queries = select_queries(num_images)
    has_files = encode is not None
    heat_maps = None
    if encode:
        heat_maps = [
            draw_heat_maps(
                model, encode, rankings['images'][image], first_text(rankings, image), layer
            )
            for image in (queries if model.matching_head else [])
        ]
    stages = metric_stages(rankings['metrics'])
    folds = rankings.get('folds', {}).get(stages[-1].prefix.rstrip('/'), 1)
    shares = attainable_shares(skills or {})
    scales = work_dir / 'token_type_scale.json'  # of LayerScaleStatsHook, if the run has it
    records = json.loads(scales.read_text()) if scales.is_file() else []
    loader = jinja2.PackageLoader('xmodal.visualization', package_path='')
    template = jinja2.Environment(loader=loader, autoescape=True).get_template('report.html.jinja')
    page = template.render(
        title=work_dir.name,
        metrics=rankings['metrics'],
        stages=stages,
        folds=folds,
        chance=chance_recall(rankings, folds),
        num_images=num_images,
        num_texts=len(rankings['texts']),
        skills=shares,
        radar=to_svg(draw_radar(shares)) if shares else '',
        curves=[to_svg(draw_curves({name: points}, 1)) for name, points in curves.items()],
        text_to_image=[text_to_image_example(rankings, image, has_files) for image in queries],
        image_to_text=[image_to_text_example(rankings, image, has_files) for image in queries],
        aucs=aucs,
        found=to_svg(draw_aucs(aucs)) if aucs else '',
        deletion=to_svg(draw_deletion(deletion)) if deletion else '',
        heat_maps=heat_maps,
        layer=shown_layer,
        sketches=_draw_sketches(model, rankings['texts']),
        scales=[to_svg(figure) for figure in draw_scales(records)],
        config=config.pretty_text,
        epochs=epochs,
        max_epochs=config.train_cfg.max_epochs,
    )
    out.write_text(page, encoding='utf-8')


def select_queries(num_images: int) -> list[int]:
    """Returns the images that are queries: spread evenly over the set, not the best ones."""
    if num_images <= EXAMPLES:
        return list(range(num_images))
    return np.linspace(0, num_images - 1, EXAMPLES + 2).astype(int)[1:-1].tolist()


def _name_layer(model: nn.Module, encode: Encode | None, layer: int | None) -> str:
    """Returns the name of Grad-CAM's layer, counted from 1; '' if the report has no Grad-CAM."""
    if encode and model.matching_head:
        return layer_name(model.backbone.fusion.depth, layer)
    if layer is not None:
        reason = "the model has no head 'itm'" if encode else 'the data set has no image files'
        raise ValueError(f'layer={layer}, but the report has no Grad-CAM, because {reason}')
    return ''


def chance_recall(rankings: dict, folds: int = 1) -> float:
    """Returns the mean recall of rankings in random order, in percent, of folds the mean."""
    num_images, images = len(rankings['images']), np.array(rankings['text_to_image'])
    counts = np.bincount(images, minlength=num_images).reshape(folds, -1)
    return 100 * float(np.mean([_chance_recall(texts_per_image) for texts_per_image in counts]))


def _chance_recall(texts_per_image: np.ndarray) -> float:
    """The share that is found among the images of one fold and their texts."""
    num_images, num_texts = len(texts_per_image), texts_per_image.sum()
    recalls = []
    for k in (1, 5, 10):
        # Hypergeometric: none of the texts of an image is among the first k.
        missed = np.ones(num_images)
        for rank in range(min(k, num_texts)):
            missed *= np.clip((num_texts - texts_per_image - rank) / (num_texts - rank), 0, 1)
        recalls += [float((1 - missed).mean()), min(k / num_images, 1)]
    return float(np.mean(recalls))


def metric_stages(metrics: dict[str, float]) -> list[Stage]:
    """Returns the stages that have retrieval metrics, the final one last."""
    means = [name.removesuffix('mean_recall') for name in metrics if name.endswith('mean_recall')]
    stages = []
    for prefix in sorted(means, key=lambda prefix: not prefix):  # without a prefix last
        before, label = f'{prefix}first_stage/', f', {prefix[:-1]}' if prefix else ''
        if before in means:
            stages += [Stage(before, f'{label}, ITC'), Stage(prefix, f'{label}, ITM re-ranking')]
        elif not prefix.endswith('first_stage/'):
            stages.append(Stage(prefix, label))
    return stages


def attainable_shares(metrics: dict[str, float]) -> dict[str, dict[str, float]]:
    """Returns the shares of the attainable in the metrics of ``SkillMetric``, by way and skill."""
    shares: dict[str, dict[str, float]] = {}
    for name, value in metrics.items():
        way, separator, skill = name.partition('/attainable/')
        if separator and skill != 'mean':
            shares.setdefault(way, {})[skill] = value
    return shares


def _draw_sketches(model: nn.Module, texts: list[str]) -> list[str]:
    """Draws the words of 100 texts in one partition, eight frequent ones labelled, and in three."""
    assignments, words = assign_words(model, evenly_spaced(texts, 100))
    if assignments is None:
        return []
    counts = Counter(word for word in words if word.isalpha() and word not in FUNCTION_WORDS)
    frequent = [word for word, _ in counts.most_common(8)]
    figures = (
        draw_words(assignments[:, 0], words, frequent),
        draw_partitions(assignments[:, :3]),
    )
    return [to_svg(figure) for figure in figures]

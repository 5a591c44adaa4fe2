"""What retrieval shows and saves: figures, a table for each metric, and rankings."""

from collections.abc import Sequence
from pathlib import Path

from mmengine.dist import is_main_process
from mmengine.evaluator import Evaluator
from rich.console import Console
from rich.table import Table

from xmodal.evaluation.queries import with_test_set
from xmodal.evaluation.retrieval import RECALLS, Gallery, RetrievalMetric
from xmodal.evaluation.task import add_prefix
from xmodal.files import write_json

DIRECTIONS = {'i2t': 'image-to-text retrieval', 't2i': 'text-to-image retrieval'}


def evaluate_gallery(
    evaluator: Evaluator, gallery: Gallery, captions: Sequence[str] = ()
) -> dict[str, float]:
    """The figures of all metrics of an evaluator; prints a table for each retrieval metric.

    Args:
        evaluator: the evaluator.
        gallery: the scores.
        captions: all texts, which tell the test set from others of the same size; () if unknown.
    """
    figures = evaluator.offline_evaluate([gallery])
    for metric in evaluator.metrics:
        if isinstance(metric, RetrievalMetric):
            metric.queries = with_test_set(metric.queries, captions)
            if is_main_process():
                print_table(figures, gallery, metric)
    return figures


def print_table(figures: dict[str, float], gallery: Gallery, metric: RetrievalMetric) -> None:
    """Prints the figures of a metric for both directions, and for both stages after re-ranking."""
    num_images, num_texts = gallery.scores.shape
    title = f'Retrieval among {num_images} images and {num_texts} texts'
    if metric.prefix:
        title += f', {metric.prefix}'
    if metric.folds > 1:
        title += f', mean of {metric.folds} folds'
    table = Table(title=title)
    for heading in ('', *(f'R@{k}' for k in RECALLS), 'median rank', 'MRR', 'mean recall'):
        table.add_column(heading, justify='right' if heading else 'left')
    stages = {'': ''}
    if gallery.itc_scores is not None:
        stages = {'first_stage': ', ITC', '': ', ITM re-ranked'}
    names = [*(f'R@{k}' for k in RECALLS), 'median_rank', 'mrr']
    for stage, suffix in stages.items():
        for direction, label in DIRECTIONS.items():
            row = [f'{direction}/{name}' for name in names]
            if is_last := direction == 't2i':
                row.append('mean_recall')
            keys = add_prefix(add_prefix(dict.fromkeys(row), stage), metric.prefix)
            cells = [f'{figures[key]:.1f}' for key in keys]
            table.add_row(label + suffix, *cells, end_section=is_last)
    Console(width=100).print(table)


def write_rankings(
    file: str,
    gallery: Gallery,
    captions: list[str],
    image_names: list[str],
    metrics: dict[str, float],
    checkpoint: str | None = None,
    folds: dict[str, int] | None = None,
) -> None:
    """Writes the metrics, and the ten best texts of every image and images of every text.

    Args:
        file: to write.
        gallery: the scores.
        captions: all texts.
        image_names: of each image.
        metrics: of the gallery.
        checkpoint: that was tested; None in a training.
        folds: of the metrics, by their prefixes; None for 1 of each.
    """
    i2t_scores, t2i_scores = gallery.directions
    ranked_texts = i2t_scores.topk(min(10, len(captions)), 1).indices.tolist()
    ranked_images = t2i_scores.topk(min(10, len(image_names)), 0).indices.T.tolist()
    content = {
        'checkpoint': checkpoint,
        'folds': folds or {},
        'metrics': metrics,
        'images': image_names,
        'texts': captions,
        'text_to_image': gallery.text_to_image.tolist(),
        'ranked_texts': ranked_texts,
        'ranked_images': ranked_images,
    }
    write_json(Path(file), content)

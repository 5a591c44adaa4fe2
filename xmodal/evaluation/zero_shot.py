"""Zero-shot classification: top-1 and top-5."""

import torch

from xmodal.evaluation.task import TaskMetric, details, in_percent
from xmodal.registry import METRICS

TOP_K = (1, 5)


@METRICS.register_module()
class ZeroShotMetric(TaskMetric):
    """Share of images, in percent, whose class is ranked first, or among the first five.

    Ties count against the model: every other class with the same score is ranked first. A
    submission is a list of ``{"image", "classes"}`` with the labels of the five best classes.

    Args:
        **others: see :class:`TaskMetric`.
    """

    query_id = 'image'

    def record(self, sample: dict) -> dict:
        """The five best classes, the rank and score of the label, and the file.

        Raises:
            ValueError: when a score is not finite, because its rank would be arbitrary.
        """
        scores: torch.Tensor = sample['scores']
        if not scores.isfinite().all():
            raise ValueError(f'the scores of {sample["image_path"]} are not finite')
        best = scores.topk(min(max(TOP_K), len(scores))).indices.tolist()
        label, own = sample['label'], scores[sample['label']]
        record = {'best': best, 'label': label, 'image': sample['image_path']}
        return {**record, 'rank': int((scores >= own).sum()), 'score': float(own)}

    def query_columns(self, records: list[dict]) -> dict[str, list[float]]:
        """``top1`` and ``top5``: whether the class is among the first."""
        hits = {f'top{k}': in_percent([r['rank'] <= k for r in records]) for k in TOP_K}
        return hits | details(records)

    def submission(self, records: list[dict]) -> list[dict]:
        """One prediction per image."""
        return [{'image': record['image'], 'classes': record['best']} for record in records]

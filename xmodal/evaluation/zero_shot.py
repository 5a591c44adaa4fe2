"""Zero-shot classification: top-1 and top-5."""

import torch

from xmodal.evaluation.task import TaskMetric
from xmodal.registry import METRICS

BEST = 5


@METRICS.register_module()
class ZeroShotMetric(TaskMetric):
    """Share of images, in percent, whose class is the best, or among the five best.

    A submission is a list of ``{"image", "classes"}`` with the numbers of the five best classes.

    Args:
        **others: see :class:`TaskMetric`.
    """

    def record(self, sample: dict) -> dict:
        """The five best classes, the right one, and the file.

        Raises:
            ValueError: when a score is not finite, which would sort anywhere.
        """
        scores: torch.Tensor = sample['scores']
        if not scores.isfinite().all():
            raise ValueError(f'scores of {sample["image_path"]} are not finite')
        best = scores.topk(min(BEST, len(scores))).indices.tolist()
        return {'best': best, 'label': sample['label'], 'image': sample['image_path']}

    def compute_metrics(self, records: list[dict]) -> dict[str, float]:
        """``top1`` and ``top5``."""
        return {
            f'top{k}': 100 * sum(r['label'] in r['best'][:k] for r in records) / len(records)
            for k in (1, BEST)
        }

    def submission(self, records: list[dict]) -> list[dict]:
        """A prediction an image."""
        return [{'image': record['image'], 'classes': record['best']} for record in records]

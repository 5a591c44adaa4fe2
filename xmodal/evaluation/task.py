"""What the metrics of all tasks with one prediction a sample share."""

import json
from collections.abc import Sequence
from pathlib import Path

from mmengine.dist import all_gather_object, is_main_process
from mmengine.evaluator import BaseMetric

from xmodal.files import atomic_open, require_new


class TaskMetric(BaseMetric):
    """Gathers predictions of all ranks, each sample once, and scores them as one process would.

    A subclass says what is kept of a sample (``record``), how records are scored
    (``compute_metrics``), and what a submission looks like (``submission``).

    Args:
        save_predictions: file for the predictions in the benchmark's own format; must not exist
            yet. Each evaluation of a run replaces that of the one before.

    Raises:
        FileExistsError: when the file is there already.
    """

    def __init__(self, save_predictions: str | None = None) -> None:
        super().__init__()
        if save_predictions:
            require_new('save_predictions', save_predictions)
        self.save_predictions = save_predictions

    def record(self, sample: dict) -> dict:
        """What is kept of a data sample with its prediction."""
        raise NotImplementedError

    def submission(self, records: list[dict]) -> object:
        """What is written to ``save_predictions``: a text as it is, anything else as JSON."""
        raise NotImplementedError

    def process(self, data_batch: dict, data_samples: Sequence[dict]) -> None:
        """Keeps a batch's records."""
        self.results += [
            {'sample_index': sample['sample_index'], **self.record(sample)}
            for sample in data_samples
        ]

    def evaluate(self, size: int) -> dict[str, float]:
        """Scores what all ranks kept; the same on every rank.

        Args:
            size: samples of the data set.

        Raises:
            ValueError: when samples are missing.
        """
        gathered = [record for part in all_gather_object(self.results) for record in part]
        self.results = []
        # By sample: a sampler may have shown some of them to two ranks.
        by_sample = {record['sample_index']: record for record in gathered}
        if len(by_sample) != size:
            raise ValueError(
                f'{type(self).__name__}: {len(by_sample)} predictions for {size} samples'
            )
        records = [by_sample[index] for index in sorted(by_sample)]
        if self.save_predictions and is_main_process():
            content = self.submission(records)
            with atomic_open(Path(self.save_predictions)) as output:
                output.write(content if isinstance(content, str) else json.dumps(content))
        metrics = self.compute_metrics(records)
        return {f'{self.prefix}/{name}' if self.prefix else name: v for name, v in metrics.items()}

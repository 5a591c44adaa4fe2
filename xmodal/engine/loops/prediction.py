"""Evaluation of predictions, sample by sample."""

import torch
from torch import nn

from xmodal.engine.loops.evaluation import EvaluationLoop
from xmodal.registry import LOOPS


@LOOPS.register_module()
class PredictionLoop(EvaluationLoop):
    """Has a model predict every sample: ``TestLoop`` as a part of a :class:`CompositeEvalLoop`.

    Its metrics are those of tasks (``TaskMetric``).
    """

    @torch.no_grad()
    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """The metrics of the model's ``predict``."""
        for batch in self.batches('predicting'):
            self.evaluator.process(model.test_step(batch), batch)
        return self.evaluator.evaluate(len(self.dataloader.dataset))

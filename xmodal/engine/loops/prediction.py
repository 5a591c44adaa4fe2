"""Evaluation of predictions, sample by sample."""

import torch
from mmengine.runner import Runner
from torch import nn
from torch.utils.data import DataLoader

from xmodal.engine.loops.evaluation import EvaluationLoop
from xmodal.registry import LOOPS


@LOOPS.register_module()
class PredictionLoop(EvaluationLoop):
    """Has a model predict every sample: ``TestLoop`` as a part of a :class:`CompositeEvalLoop`.

    Args:
        runner: the runner.
        dataloader: of a data set in test mode.
        evaluator: config of the metric, such as a ``TaskMetric``, or of a list of them.
    """

    def __init__(
        self, runner: Runner, dataloader: DataLoader | dict, evaluator: dict | list[dict]
    ) -> None:
        super().__init__(runner, dataloader)
        self.evaluator = runner.build_evaluator(evaluator)

    @torch.no_grad()
    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """The metrics of the model's ``predict``."""
        for batch in self.batches('predicting'):
            self.evaluator.process(model.test_step(batch), batch)
        return self.evaluator.evaluate(len(self.dataloader.dataset))

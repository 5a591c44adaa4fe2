"""The base of the loops that evaluate."""

from mmengine.runner import BaseLoop
from torch import nn


class EvaluationLoop(BaseLoop):
    """Evaluates the whole model, with the hooks of validation or test before and after."""

    def run(self) -> dict[str, float]:
        """Evaluates and returns the metrics."""
        mode = 'test' if self.runner._test_loop is self else 'val'
        self.runner.call_hook(f'before_{mode}')
        self.runner.call_hook(f'before_{mode}_epoch')
        metrics = self.evaluate(self.runner.whole_model().eval())
        self.runner.call_hook(f'after_{mode}_epoch', metrics=metrics)
        self.runner.call_hook(f'after_{mode}')
        return metrics

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """The metrics of a model; every rank calls this."""
        raise NotImplementedError

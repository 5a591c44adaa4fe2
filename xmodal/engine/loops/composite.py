"""Several evaluations of one model."""

from mmengine.runner import Runner
from torch import nn
from torch.utils.data import DataLoader

from xmodal.engine.loops.evaluation import SAVED_FILES, EvaluationLoop, writers_of
from xmodal.errors import ConfigError
from xmodal.registry import LOOPS


@LOOPS.register_module()
class CompositeEvalLoop(EvaluationLoop):
    """Runs several evaluation loops in turn; the name of a loop is the prefix of its metrics.

    Args:
        runner: the runner.
        dataloader: for the loops without one; not built if all loops have one.
        evaluator: for the loops without one.
        loops: configs of the loops by name, each an :class:`EvaluationLoop`; a loop that is None
            is left out.

    Raises:
        ConfigError: when a loop is of another kind, as MMEngine's, or writes the file of another.
        ValueError: when no loop is left.
    """

    def __init__(
        self,
        runner: Runner,
        dataloader: DataLoader | dict,
        evaluator: dict | list[dict],
        loops: dict[str, dict | None],
    ) -> None:
        shared = dict(runner=runner, dataloader=dataloader, evaluator=evaluator)
        self.loops = {
            name: LOOPS.build({**shared, **loop})
            for name, loop in loops.items()
            if loop is not None
        }
        if not self.loops:
            raise ValueError(f'CompositeEvalLoop.loops leaves out all of {sorted(loops)}')
        for name, loop in self.loops.items():
            if not hasattr(loop, 'evaluate'):  # MMEngine's
                raise ConfigError(
                    f'CompositeEvalLoop.loops.{name} is a {type(loop).__name__}, expected a loop '
                    "with evaluate(model): for a model's predictions type='PredictionLoop'"
                )
        _require_own_files(self.loops)
        super().__init__(runner, next(iter(self.loops.values())).dataloader)

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """The metrics of all loops."""
        return {
            f'{name}/{metric}': value
            for name, loop in self.loops.items()
            for metric, value in loop.evaluate(model).items()
        }


def _require_own_files(loops: dict[str, EvaluationLoop]) -> None:
    """Refuses loops of which one would write over what another has written.

    Raises:
        ConfigError: names both loops and the file.
    """
    writers: dict[str, str] = {}
    for name, loop in loops.items():
        files = (getattr(part, key, None) for part in writers_of(loop) for key in SAVED_FILES)
        for file in map(str, filter(None, files)):
            if (other := writers.setdefault(file, name)) != name:
                raise ConfigError(
                    f'CompositeEvalLoop.loops.{other} and {name} both write {file}: give each a '
                    'file of its own (save_predictions is a key of the evaluator)'
                )

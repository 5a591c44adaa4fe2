"""The base of the loops that evaluate."""

from collections.abc import Iterator

from mmengine.dist import is_main_process
from mmengine.runner import BaseLoop, Runner
from torch import Tensor, nn
from torch.utils.data import DataLoader
from tqdm import tqdm

from xmodal.errors import ConfigError
from xmodal.structures import Encoded, require_unit_length

#: What a loop or a metric writes, by the attribute that has the file.
SAVED_FILES = ('save_rankings', 'save_scores', 'save_predictions', 'image_folder')


class EvaluationLoop(BaseLoop):
    """Evaluates the whole model, with the hooks of validation or test before and after.

    Args:
        runner: the runner.
        dataloader: of a data set in test mode.
        evaluator: config of the metric, or of a list of them; None for a loop of loops.
    """

    def __init__(
        self,
        runner: Runner,
        dataloader: DataLoader | dict,
        evaluator: dict | list[dict] | None = None,
    ) -> None:
        super().__init__(runner, dataloader)
        if evaluator is not None:
            self.evaluator = runner.build_evaluator(evaluator)

    def run(self) -> dict[str, float]:
        """Evaluates and returns the metrics."""
        mode = 'test' if self.runner._test_loop is self else 'val'
        self.runner.call_hook(f'before_{mode}')
        self.runner.call_hook(f'before_{mode}_epoch')
        metrics = self.evaluate(self.runner.whole_model().eval())
        self.runner.call_hook(f'after_{mode}_epoch', metrics=metrics)
        self.runner.call_hook(f'after_{mode}')
        return metrics

    def batches(self, title: str) -> tqdm:
        """The batches of the data loader, with a bar that the first rank shows."""
        return tqdm(self.dataloader, title, unit=' batches', disable=not is_main_process())

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """The metrics of a model; every rank calls this."""
        raise NotImplementedError


def single_loops(loop: BaseLoop, prefix: str = '') -> Iterator[tuple[str, BaseLoop]]:
    """The loops that a loop is made of, or itself, each with what comes before its figures."""
    if parts := getattr(loop, 'loops', None):
        for name, part in parts.items():
            yield from single_loops(part, f'{prefix}{name}/')
    else:
        yield prefix, loop


def writers_of(loop: BaseLoop) -> list[object]:
    """What may write :data:`SAVED_FILES`: single loops and their metrics."""
    loops = [part for _, part in single_loops(loop)]
    evaluators = [part.evaluator for part in loops if hasattr(part, 'evaluator')]
    return [*loops, *(metric for evaluator in evaluators for metric in evaluator.metrics)]


def embedding_of(encoded: Encoded, model: nn.Module, loop: str) -> Tensor:
    """The embeddings of encoded images or texts, (B, d) float32.

    Args:
        encoded: by the model.
        model: is named in the error.
        loop: likewise.

    Raises:
        ConfigError: when the model gives no embeddings.
    """
    embedding = getattr(encoded, 'embedding', None)
    if embedding is None:
        raise ConfigError(
            f'{loop} compares embeddings, and {type(model).__name__} has none: use a model with a '
            'contrastive objective'
        )
    return embedding.float()


def unit_embedding_of(encoded: Encoded, model: nn.Module, loop: str) -> Tensor:
    """As :func:`embedding_of`, for a loop whose products are to be cosines.

    Raises:
        ConfigError: when the model gives no embeddings.
        ValueError: when they are not normalised.
    """
    embedding = embedding_of(encoded, model, loop)
    require_unit_length(embedding, model)
    return embedding

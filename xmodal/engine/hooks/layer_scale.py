"""Whether token types are used: statistics of their LayerScale."""

import json
from functools import partial
from pathlib import Path

from mmengine.dist import is_main_process
from mmengine.hooks import Hook
from mmengine.runner import Runner
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from torch.utils.hooks import RemovableHandle

from xmodal.engine.wrappers import unwrap
from xmodal.files import write_json
from xmodal.registry import HOOKS, MODELS

FILE = 'token_type_scale.json'
LARGEST = 10


def scale_statistics(gamma: Tensor, initial: float) -> dict[str, float]:
    """What says how much, and by how many channels, a scale γ lets through.

    The paper reports the first three. The mean is a weak test: γ may be negative (only its product
    with t counts), and two channels can make it.

    Args:
        gamma: of any shape.
        initial: what every entry began with.

    Returns:
        ``mean``, ``std``, ``max``, ``mean_abs``, ``max_abs``, ``share_above`` (of entries whose
        |γ| is above ten times the initial value) and ``participation``, (Σγ²)² / Σγ⁴: the number of
        channels, if all that take part were alike.
    """
    gamma = gamma.detach().double().flatten()
    size, square = gamma.abs(), gamma.square()
    values = {
        'mean': gamma.mean(),
        'std': gamma.std(),
        'max': gamma.max(),
        'mean_abs': size.mean(),
        'max_abs': size.max(),
        'share_above': (size > 10 * initial).double().mean(),
        'participation': square.sum().square() / square.square().sum(),
    }
    return {name: float(value) for name, value in values.items()}


def largest_channels(gamma: Tensor) -> list[tuple[int, float]]:
    """Place and value of the ten entries of γ that are largest in size."""
    gamma = gamma.detach().flatten()
    places = gamma.abs().topk(min(LARGEST, len(gamma))).indices.tolist()
    return [(place, float(gamma[place])) for place in places]


@HOOKS.register_module()
class LayerScaleStatsHook(Hook):
    """Logs the statistics of token types' scales at the start, after each epoch and at the end.

    Scales are those of ``TokenTypeEmbedding`` modules, by whatever name, and no others: scales
    inside of blocks are not of types. ‖γ ⊙ t‖ / ‖H‖, the size of what is added beside that of the
    tokens it is added to, a mean over tokens, is measured in the last training batch of an epoch,
    and for the start in the first batch. All goes to the log's scalars, and with the ten largest
    channels to ``token_type_scale.json`` in the run's folder. Where the model has no token types,
    nothing is logged.
    """

    def before_train(self, runner: Runner) -> None:
        """Finds the modules, and takes the statistics of the start."""
        kind = MODELS.get('TokenTypeEmbedding')
        self.modules = {
            name: module
            for name, module in unwrap(runner.model).named_modules()
            if isinstance(module, kind) and module.type_embeddings.requires_grad  # no teacher's
        }
        self.shares: dict[str, dict[str, float]] = {name: {} for name in self.modules}
        self.handles: list[RemovableHandle] = []
        self.file = Path(runner.work_dir, FILE)
        self.records: list[dict] = []
        if runner.iter and self.file.is_file():  # resumed
            records = json.loads(self.file.read_text())
            self.records = [
                r for r in records if r['iteration'] <= runner.iter and r['when'] != 'end'
            ]
        if not self.modules:
            runner.logger.info('LayerScaleStatsHook: the model has no token types')
        self.start = None if runner.iter else self._measure()

    def before_train_iter(
        self, runner: Runner, batch_idx: int, data_batch: dict | None = None
    ) -> None:
        """Looks at the tokens of the first batch, and of the last one of an epoch."""
        if self.start is not None or batch_idx + 1 == len(runner.train_dataloader):
            self.handles = [
                module.register_forward_hook(partial(_note_shares, self.shares[name]))
                for name, module in self.modules.items()
            ]

    def after_train_iter(
        self,
        runner: Runner,
        batch_idx: int,
        data_batch: dict | None = None,
        outputs: dict | None = None,
    ) -> None:
        """Stops looking."""
        for handle in self.handles:
            handle.remove()
        self.handles = []
        if self.start is not None:
            self._log(runner, 'start', self.start, iteration=0)
            self.start = None

    def after_train_epoch(self, runner: Runner) -> None:
        """Logs the epoch."""
        self._log(runner, f'epoch {runner.epoch + 1}', self._measure(), runner.iter)

    def after_train(self, runner: Runner) -> None:
        """Logs the end."""
        self._log(runner, 'end', self._measure(), runner.iter)

    def _measure(self) -> dict[str, dict]:
        """Statistics and largest channels of every scale."""
        found = {}
        for name, module in self.modules.items():
            found[name] = {}
            if module.gamma is not None:
                gamma = _whole(module.gamma.detach())
                found[name] = scale_statistics(gamma, module.layer_scale)
                found[name]['largest'] = largest_channels(gamma)
        return found

    def _log(self, runner: Runner, when: str, found: dict[str, dict], iteration: int) -> None:
        """Adds the shares of the modalities, and writes."""
        if not found:
            return
        for name, own in found.items():
            own |= self.shares[name]
            scalars = {f'{name}/{key}': v for key, v in own.items() if key != 'largest'}
            runner.visualizer.add_scalars(scalars, step=iteration)
        self.records.append({'when': when, 'iteration': iteration, 'scales': found})
        if is_main_process():
            write_json(self.file, self.records, indent=1)


def _note_shares(
    shares: dict[str, float], module: nn.Module, inputs: tuple[Tensor, str], output: Tensor
) -> None:
    """Keeps ‖γ ⊙ t‖ / ‖H‖ of the modality that a module just saw."""
    tokens, modality = inputs
    added = module.contribution(modality).detach().norm()
    shares[f'share_{modality}'] = float((added / tokens.detach().float().norm(dim=-1)).mean())


def _whole(tensor: Tensor) -> Tensor:
    """All of a tensor that FSDP has shared out."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor

"""Statistics of the LayerScale of token types, which show whether the types are used."""

import json
from functools import partial
from pathlib import Path

from mmengine.dist import is_main_process
from mmengine.hooks import Hook
from mmengine.runner import Runner
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from xmodal.engine.wrappers import unwrap, whole
from xmodal.files import write_json
from xmodal.registry import HOOKS, MODELS

FILE = 'token_type_scale.json'
LARGEST = 10
SHARES = 'token_type_shares'  # in the checkpoint


def scale_statistics(gamma: Tensor, initial: float) -> dict[str, float]:
    """Measures how strong a scale γ is, and in how many channels.

    The paper reports the first three values. The mean is a weak test: γ may be negative (only its
    product with t counts), and two channels may determine it.

    Args:
        gamma: γ, of any shape.
        initial: initial value of every entry.

    Returns:
        ``mean``, ``std``, ``max``, ``mean_abs``, ``max_abs``, ``share_above`` (the share of entries
        with |γ| above ten times the initial value) and ``participation``, (Σγ²)² / Σγ⁴: the number
        of equally strong channels that would give this ratio.
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
    """Returns index and value of the ten entries of γ with the largest magnitude."""
    gamma = gamma.detach().flatten()
    channels = gamma.abs().topk(min(LARGEST, len(gamma))).indices.tolist()
    return [(channel, float(gamma[channel])) for channel in channels]


@HOOKS.register_module()
class LayerScaleStatsHook(Hook):
    """Logs the statistics of token types' scales at the start, after each epoch and at the end.

    It considers ``TokenTypeEmbedding`` modules only, not the scales inside blocks. It also measures
    ‖γ ⊙ t‖ / ‖H‖, the norm of the token type relative to the tokens it is added to, as a mean over
    the tokens of the last training batch of an epoch, and of the first batch for the start. The
    values go to the scalars of the log and, with the ten largest channels, to
    ``token_type_scale.json`` in the work dir. Without token types in the model, nothing is logged.
    """

    def before_train(self, runner: Runner) -> None:
        """Finds the modules, and measures the statistics of the start."""
        token_type = MODELS.get('TokenTypeEmbedding')
        self.modules = {
            name: module
            for name, module in unwrap(runner.model).named_modules()
            if isinstance(module, token_type)
            and module.type_embeddings.requires_grad  # not those of a teacher
        }
        measured = runner.message_hub.runtime_info.get(SHARES, {})  # of a resumed run
        self.shares: dict[str, dict[str, float]] = {
            name: dict(measured.get(name, {})) for name in self.modules
        }
        self.handles: list[RemovableHandle] = []
        self.file = Path(runner.work_dir, FILE)
        self.records: dict[str, dict] = {}  # by when they were measured
        if runner.iter and self.file.is_file():  # resumed
            self.records = {
                record['when']: record
                for record in json.loads(self.file.read_text())
                if record['iteration'] <= runner.iter and record['when'] != 'end'
            }
        if not self.modules:
            runner.logger.info('LayerScaleStatsHook: the model has no token types')
        self.start = None if runner.iter else self._measure()

    def before_train_iter(self, runner: Runner, batch_idx: int, *_, **__) -> None:
        """Registers forward hooks for the first batch, and for the last batch of an epoch."""
        if self.start is not None or batch_idx + 1 == len(runner.train_dataloader):
            self.handles = [
                module.register_forward_hook(partial(_record_share, self.shares[name]))
                for name, module in self.modules.items()
            ]

    def after_train_iter(self, runner: Runner, *_, **__) -> None:
        """Removes the forward hooks."""
        for handle in self.handles:
            handle.remove()
        if self.handles:
            shares = {name: dict(values) for name, values in self.shares.items()}
            runner.message_hub.update_info(SHARES, shares)
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
        """Returns statistics and largest channels of every scale, by the name of the module."""
        scales = {}
        for name, module in self.modules.items():
            scales[name] = {}
            if module.gamma is not None:
                gamma = whole(module.gamma.detach())
                scales[name] = scale_statistics(gamma, module.layer_scale)
                scales[name]['largest'] = largest_channels(gamma)
        return scales

    def _log(self, runner: Runner, when: str, scales: dict[str, dict], iteration: int) -> None:
        """Adds the shares of the modalities, and writes log and file."""
        if not scales:
            return
        for name, statistics in scales.items():
            statistics |= self.shares[name]
            scalars = {f'{name}/{key}': v for key, v in statistics.items() if key != 'largest'}
            runner.visualizer.add_scalars(scalars, step=iteration)
        self.records[when] = {'when': when, 'iteration': iteration, 'scales': scales}
        if is_main_process():
            write_json(self.file, list(self.records.values()), indent=1)


def _record_share(
    shares: dict[str, float], module: nn.Module, inputs: tuple[Tensor, str], output: Tensor
) -> None:
    """Stores ‖γ ⊙ t‖ / ‖H‖ of the modality that a module just processed."""
    tokens, modality = inputs
    added = module.contribution(modality).detach().norm()
    shares[f'share_{modality}'] = float((added / tokens.detach().float().norm(dim=-1)).mean())

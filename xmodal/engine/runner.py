"""MMEngine's Runner with what it lacks: CPUs, plain and atomic checkpoints, derived batch sizes."""

import os
from pathlib import Path

import torch
from mmengine.device import get_device
from mmengine.dist import get_world_size, master_only
from mmengine.optim import _ParamScheduler
from mmengine.runner import BaseLoop, Runner
from torch import nn
from torch.utils.data import DataLoader

from xmodal.engine.checkpoint import (
    UNREADABLE,
    from_plain,
    load_weights,
    read_checkpoint,
    to_plain,
)
from xmodal.engine.hooks.robust import leave_sigterm_to_training
from xmodal.engine.memory import recompute_activations
from xmodal.engine.sharding import ShardedModel
from xmodal.engine.wrappers import share_statistics, unwrap
from xmodal.files import atomic_write
from xmodal.registry import MODELS, RUNNERS

MMENGINE_LOOPS = ('ValLoop', 'TestLoop')


@RUNNERS.register_module()
class XModalRunner(Runner):
    """The runner of every config; see :class:`mmengine.runner.Runner`.

    * The same config runs on a CPU, one GPU, or many processes of either kind.
    * ``train_dataloader.global_batch_size`` is shared out over ranks and accumulation.
    * Checkpoints load with ``weights_only=True`` and appear under their name only when whole.

    Attributes:
        sharded: the model shared out over the ranks (the config's key ``fsdp``), or None.
    """

    sharded: ShardedModel | None = None
    _gathered: dict = {}  # whole tensors of a sharded model, while a checkpoint is being saved

    def setup_env(self, env_cfg: dict) -> None:
        """Sets up processes; on CPUs these talk through gloo."""
        on_cpu = not torch.cuda.is_available()
        if self.distributed and on_cpu and not torch.distributed.is_initialized():
            if self._launcher != 'pytorch':
                raise RuntimeError(
                    f'--launcher {self._launcher} needs GPUs and none is visible; on CPUs use '
                    'torchrun (tools/dist_train.sh), which is --launcher pytorch'
                )
            torch.distributed.init_process_group('gloo')
        super().setup_env(env_cfg)

    def wrap_model(self, model_wrapper_cfg: dict | None, model: nn.Module) -> nn.Module:
        """Wraps the model for several processes; on CPUs without device numbers."""
        if self.cfg.get('fsdp'):
            return model.to(get_device())  # shared out when training begins
        if self.distributed and not torch.cuda.is_available():
            model_wrapper_cfg = {
                'type': 'MMDistributedDataParallel',
                'device_ids': None,
                'broadcast_buffers': False,
                'find_unused_parameters': self.cfg.get('find_unused_parameters', False),
                **(model_wrapper_cfg or {}),
            }
        return super().wrap_model(model_wrapper_cfg, model)

    def train(self) -> nn.Module:
        """Trains; for ``activation_checkpointing`` and ``fsdp`` see docs/training.md."""
        # MMEngine reads the same key, but passes on no keyword arguments.
        if names := self.cfg.pop('activation_checkpointing', None):
            recompute_activations(self.model, names)
        if self.distributed and self.cfg.get('fsdp'):
            super()._init_model_weights()
            self.sharded = ShardedModel(self.model, self.cfg.fsdp.units)
        return super().train()

    def _init_model_weights(self) -> None:
        """Loads pretrained weights; before a model is shared out, which is earlier."""
        if self.sharded is None:
            super()._init_model_weights()

    def whole_model(self) -> nn.Module:
        """The model without wrapper and with whole parameters; every rank must call this."""
        share_statistics(self.model)
        if self.sharded is None:
            return unwrap(self.model)
        model = MODELS.build(self.cfg.model).to(get_device())
        model.load_state_dict(self.sharded.gather_weights(), strict=False)
        return model

    def build_train_loop(self, loop: BaseLoop | dict) -> BaseLoop:
        """Builds the loop, with this rank's share of the batch."""
        if isinstance(self._train_dataloader, dict):
            self._train_dataloader = self._share_out(self._train_dataloader)
        loop = super().build_train_loop(loop)
        if not len(loop.dataloader):
            raise ValueError(
                f'train_dataloader has no whole batch: {len(loop.dataloader.dataset)} samples for '
                f'{get_world_size()} process(es) x {loop.dataloader.batch_size}: lower '
                'train_dataloader.global_batch_size'
            )
        return loop

    def build_param_scheduler(self, scheduler: list | dict) -> list:
        """Builds the schedules, but for those that would begin when a short run has ended."""
        schedules = [scheduler] if isinstance(scheduler, dict) else scheduler
        return super().build_param_scheduler([own for own in schedules if self._is_reached(own)])

    def _is_reached(self, schedule: dict | _ParamScheduler) -> bool:
        if isinstance(schedule, _ParamScheduler):  # built already, of a run that is resumed
            return True
        ends = self.max_epochs if schedule.get('by_epoch', True) else self.max_iters
        return schedule.get('begin', 0) < ends

    def build_val_loop(self, loop: BaseLoop | dict) -> BaseLoop:
        """Builds the loop, with as many batches on all ranks where a sharded model needs it."""
        self._val_dataloader = self._even_out(self._val_dataloader, loop)
        return super().build_val_loop(loop)

    def build_test_loop(self, loop: BaseLoop | dict) -> BaseLoop:
        """Likewise."""
        self._test_dataloader = self._even_out(self._test_dataloader, loop)
        return super().build_test_loop(loop)

    def _even_out(self, dataloader: DataLoader | dict, loop: BaseLoop | dict) -> DataLoader | dict:
        """Shows some samples to two ranks; the metrics of tasks count each once.

        MMEngine's own loops call the sharded model, in which all ranks take part; ours gather it.
        """
        are_configs = isinstance(loop, dict) and isinstance(dataloader, dict)
        if not self.cfg.get('fsdp') or not are_configs or loop.get('type') not in MMENGINE_LOOPS:
            return dataloader
        return {**dataloader, 'sampler': {**dataloader['sampler'], 'round_up': True}}

    def test(self) -> dict[str, float]:
        """Tests, with a checkpoint that has weights for the whole model."""
        if self._load_from and not self._has_loaded:
            load_weights(unwrap(self.model), self._load_from)
            self._has_loaded = True
        return super().test()

    def load_checkpoint(self, filename: str, *args, **kwargs) -> dict:
        """Loads the weights that fit.

        Raises:
            ValueError: when there are none, or the file can't be read.
        """
        try:
            checkpoint = super().load_checkpoint(filename, *args, **kwargs)
        except UNREADABLE:
            read_checkpoint(filename)  # says it where the file is to blame
            raise
        own = dict(unwrap(self.model).named_parameters())
        found = list(checkpoint.get('state_dict', checkpoint))
        if not any(name.removeprefix('module.') in own for name in found):
            raise ValueError(
                f'{filename} has nothing for {type(unwrap(self.model)).__name__}: its weights are '
                f"called '{next(iter(found), '')}' and the like, expected '{next(iter(own))}'. "
                "Another project's weights are converted by tools/model_converters"
            )
        return checkpoint

    @staticmethod
    def build_dataloader(dataloader: DataLoader | dict, *args, **kwargs) -> DataLoader:
        """Builds a loader, for training or validation, that a SIGTERM to all does not end."""
        if isinstance(dataloader, dict):
            dataloader = {'worker_init_fn': dict(type=leave_sigterm_to_training), **dataloader}
        return Runner.build_dataloader(dataloader, *args, **kwargs)

    def _share_out(self, dataloader: dict) -> dict:
        """Turns ``global_batch_size`` into the ``batch_size`` of one rank and one iteration."""
        dataloader = dict(dataloader)
        total = dataloader.pop('global_batch_size', None)
        if total is None:
            return dataloader
        if 'batch_size' in dataloader:
            raise ValueError(
                'train_dataloader has both global_batch_size (of all processes) and batch_size (of '
                'one): leave one out'
            )
        ranks = get_world_size()
        steps = self.cfg.get('optim_wrapper', {}).get('accumulative_counts', 1)
        if total % (ranks * steps):
            raise ValueError(
                f'train_dataloader.global_batch_size={total} is not a multiple of {ranks} '
                f'process(es) x {steps} accumulated step(s): change one of the three'
            )
        dataloader['batch_size'] = share = total // (ranks * steps)
        if share < total:
            self.logger.info(
                f'global_batch_size={total} is {ranks} process(es) x {steps} accumulated step(s) x '
                f'{share}: a loss that compares the samples of a batch (the negatives of matching) '
                f'compares {share}'
            )
        return dataloader

    def call_hook(self, fn_name: str, **kwargs) -> None:
        """Calls the hooks; what a checkpoint holds is made plain last and read back first."""
        if fn_name == 'after_load_checkpoint':
            checkpoint = kwargs['checkpoint']
            if 'message_hub' in checkpoint:
                checkpoint['message_hub'] = from_plain(checkpoint['message_hub'])
            if self.sharded and 'optimizer' in checkpoint:
                checkpoint['optimizer'] = self.sharded.scatter_optimizer(
                    self.optim_wrapper.optimizer, checkpoint['optimizer']
                )
        super().call_hook(fn_name, **kwargs)
        if fn_name == 'before_save_checkpoint':
            checkpoint = kwargs['checkpoint']
            for key in checkpoint.keys() - {'state_dict', 'optimizer'}:
                checkpoint[key] = to_plain(checkpoint[key])
            checkpoint.update(self._gathered)

    def save_checkpoint(
        self, out_dir: str, filename: str, *args, save_optimizer: bool = True, **kwargs
    ) -> None:
        """Saves on the first rank, where nobody can see the file before it is whole."""
        share_statistics(self.model)
        if self.sharded:
            self._gathered = {'state_dict': self.sharded.gather_weights()}
            if save_optimizer:
                wrapper = self.optim_wrapper
                state = self.sharded.gather_optimizer(wrapper.optimizer, wrapper.state_dict())
                self._gathered['optimizer'] = state
        self._save_whole(out_dir, filename, *args, save_optimizer=save_optimizer, **kwargs)
        self._gathered = {}

    @master_only
    def _save_whole(self, out_dir: str, filename: str, *args, **kwargs) -> None:
        """Writes beside the checkpoint's place and moves it there when it is on the disk."""
        with atomic_write(Path(out_dir, filename)) as path:
            super().save_checkpoint(out_dir, path.name, *args, **kwargs)
            with open(path, 'rb') as file:
                os.fsync(file.fileno())

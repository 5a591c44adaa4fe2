"""MMEngine's runner, with CPUs, FSDP, global batch sizes, and atomic checkpoints."""

from pathlib import Path

import torch
from mmengine.device import get_device
from mmengine.dist import get_world_size, is_main_process, master_only
from mmengine.logging import MMLogger
from mmengine.runner import BaseLoop, Runner
from torch import nn
from torch.utils.data import DataLoader

from xmodal.checkpoint_file import read_checkpoint
from xmodal.datasets.seeding import set_run_seed
from xmodal.engine.batch_size import divide_batch, leave_out_excess, require_batch
from xmodal.engine.checkpoint import from_plain, load_start_weights, load_weights, to_plain
from xmodal.engine.device import leave_out_mps
from xmodal.engine.hooks.checks import check_hooks
from xmodal.engine.hooks.preemption import leave_signals_to_training
from xmodal.engine.keys import check_dataloader
from xmodal.engine.layers import prepare_layers
from xmodal.engine.legacy import current_names
from xmodal.engine.optim.schedules import acts, keep_ratios
from xmodal.engine.processes import end_with_launcher, signals_restored
from xmodal.engine.resume import change_seed, require_whole_run, warn_of_changes
from xmodal.engine.sharding import ShardedModel, equalize_batches
from xmodal.engine.terminal import shorten_on_terminal
from xmodal.engine.work_dir import latest_checkpoint, set_last_checkpoint
from xmodal.engine.wrappers import share_statistics, unwrap
from xmodal.errors import ConfigError
from xmodal.files import atomic_write, name_in_errors
from xmodal.lora import to_lora_names
from xmodal.registry import MODELS, RUNNERS

_MMENGINE_HOOKS = 'runtime_info timer sampler_seed logger param_scheduler checkpoint'.split()


@RUNNERS.register_module()
class XModalRunner(Runner):
    """The runner of every config; see :class:`mmengine.runner.Runner`.

    * The same config runs on a CPU, one GPU, or many processes of either kind.
    * ``train_dataloader.global_batch_size`` is divided by ranks and accumulated steps.
    * Checkpoints load with ``weights_only=True``, and a file appears only when it is complete.

    Attributes:
        sharded: the model sharded over the ranks (the config's key ``fsdp``), or None.
    """

    sharded: ShardedModel | None = None
    _gathered: dict = {}  # whole tensors of a sharded model, while a checkpoint is saved

    def setup_env(self, env_cfg: dict) -> None:
        """Sets up the processes. On CPUs they communicate through gloo."""
        leave_out_mps()
        if self.distributed:
            end_with_launcher()
        on_cpu = not torch.cuda.is_available()
        if self.distributed and on_cpu and not torch.distributed.is_initialized():
            if self._launcher != 'pytorch':
                raise ConfigError(
                    f'--launcher {self._launcher} needs GPUs and none is visible; on CPUs use '
                    'torchrun (tools/dist_train.sh), which is --launcher pytorch'
                )
            torch.distributed.init_process_group('gloo')
        super().setup_env(env_cfg)

    def build_logger(self, *args, **kwargs) -> MMLogger:
        """Builds the logger, which shortens what is long on the terminal."""
        return shorten_on_terminal(super().build_logger(*args, **kwargs))

    @master_only
    def dump_config(self) -> None:
        """Writes the config to the work dir as Python, never YAML, once a run to resume fits it."""
        if self._has_loaded or not (self._resume and self._load_from):
            self.cfg.dump(f'{self.work_dir}/{Path(self.cfg.filename or self.timestamp).stem}.py')

    def wrap_model(self, model_wrapper_cfg: dict | None, model: nn.Module) -> nn.Module:
        """Wraps the model for several processes; on CPUs without device ids."""
        if self.cfg.get('fsdp'):
            return model.to(get_device())  # sharded when training starts
        if self.distributed and not torch.cuda.is_available():
            model_wrapper_cfg = {
                'type': 'MMDistributedDataParallel',
                'device_ids': None,
                'broadcast_buffers': False,
                'find_unused_parameters': self.cfg.get('find_unused_parameters', False),
                **(model_wrapper_cfg or {}),
            }
        return super().wrap_model(model_wrapper_cfg, model)

    @staticmethod
    def build_dataloader(dataloader: DataLoader | dict, *args, **kwargs) -> DataLoader:
        """Checks the keys, and builds a loader whose workers survive signals to all processes."""
        if isinstance(dataloader, dict):
            check_dataloader(dataloader)
            default = {'worker_init_fn': dict(type=leave_signals_to_training)}
            dataloader = {**default, **leave_out_excess(dataloader)}
        loader = Runner.build_dataloader(dataloader, *args, **kwargs)
        set_run_seed(loader.dataset, kwargs.get('seed'))
        return loader

    def register_default_hooks(self, hooks: dict | None = None) -> None:
        """Registers hooks by name; None leaves one out, which MMEngine allows for its own only."""
        named = (hooks or {}).items()
        kept = {k: hook for k, hook in named if hook is not None or k in _MMENGINE_HOOKS}
        super().register_default_hooks(kept)

    def build_train_loop(self, loop: BaseLoop | dict) -> BaseLoop:
        """Builds the loop, with the batch size of one rank."""
        if isinstance(loop, dict) and not {'type', 'by_epoch'} & loop.keys():
            raise ConfigError("train_cfg has no type, expected type='ResumableEpochTrainLoop'")
        if isinstance(self._train_dataloader, dict):
            steps = self.cfg.get('optim_wrapper', {}).get('accumulative_counts', 1)
            self._train_dataloader = divide_batch(
                self._train_dataloader, get_world_size(), steps, self.logger
            )
        loop = super().build_train_loop(loop)
        require_batch(loop.dataloader, get_world_size(), unwrap(self.model))
        return loop

    def build_val_loop(self, loop: BaseLoop | dict) -> BaseLoop:
        """Builds the loop; also MMEngine's default loop through the registry, which checks keys."""
        loop = {'type': 'ValLoop', **loop} if isinstance(loop, dict) else loop
        if self.cfg.get('fsdp'):
            self._val_dataloader = equalize_batches(loop, self._val_dataloader)
        return super().build_val_loop(loop)

    def build_test_loop(self, loop: BaseLoop | dict) -> BaseLoop:
        """Builds the loop as :meth:`build_val_loop` does."""
        loop = {'type': 'TestLoop', **loop} if isinstance(loop, dict) else loop
        if self.cfg.get('fsdp'):
            self._test_dataloader = equalize_batches(loop, self._test_dataloader)
        return super().build_test_loop(loop)

    def build_param_scheduler(self, scheduler: list | dict) -> list:
        """Builds the schedules, except those that would not act: they begin late, or are short."""
        schedules = [scheduler] if isinstance(scheduler, dict) else scheduler
        kept = [s for s in schedules if acts(s, self.train_loop, self.logger)]
        return super().build_param_scheduler(
            [keep_ratios(s, self.optim_wrapper) if isinstance(s, dict) else s for s in kept]
        )

    def train(self) -> nn.Module:
        """Trains."""
        check_hooks(self.model, self.hooks)
        prepare_layers(self.model, self.cfg)
        if self.distributed and self.cfg.get('fsdp'):
            super()._init_model_weights()
            self.sharded = ShardedModel(self.model, self.cfg.fsdp.units)
        with name_in_errors(self.work_dir), signals_restored():
            return super().train()

    def _init_model_weights(self) -> None:
        """Loads pretrained weights. With FSDP they are loaded before, into the whole model."""
        if self.sharded is None:
            super()._init_model_weights()

    def whole_model(self) -> nn.Module:
        """Returns the model with whole parameters, without a wrapper; every rank must call this."""
        share_statistics(self.model)
        if self.sharded is None:
            return unwrap(self.model)
        model = MODELS.build(self.cfg.model).to(get_device())
        model.load_state_dict(self.sharded.gather_weights(), strict=False)
        return model

    def test(self) -> dict[str, float]:
        """Tests a checkpoint that has weights for the whole model."""
        if self._load_from and not self._has_loaded:
            load_weights(unwrap(self.model), self._load_from)
            self._has_loaded = True
        with name_in_errors(self.work_dir):
            return super().test()

    def resume(self, *args, **kwargs) -> None:
        """Resumes a run, with its seed in the place of the config's, also for samples."""
        seed = self.seed
        super().resume(*args, **kwargs)
        change_seed(self.train_dataloader, seed, self.seed)

    def load_or_resume(self) -> None:
        """Loads the config's checkpoint; to resume without one, the latest of the work dir."""
        if self._resume and not self._load_from:
            self._load_from = latest_checkpoint(self.work_dir)
        if not self._load_from:
            return
        super().load_or_resume()
        if self._resume:
            self.dump_config()
        # It may have named another one, or nothing that is there.
        is_own = Path(self._load_from).parent.resolve() == Path(self.work_dir).resolve()
        if self._resume and is_own and is_main_process():
            set_last_checkpoint(self.work_dir, self._load_from)

    def load_checkpoint(self, filename: str, *_, **__) -> dict:
        """Loads a whole run to resume it, or the weights that a new run starts from, on the CPU.

        Raises:
            FileNotFoundError: if the file is missing.
            ValueError: if it does not fit: :func:`require_whole_run`, :func:`load_start_weights`.
        """
        checkpoint, model = read_checkpoint(filename), unwrap(self.model)
        names = model.state_dict()
        checkpoint['state_dict'] = current_names(checkpoint.get('state_dict', checkpoint), names)
        if self._resume:
            schedules = self.param_schedulers or []
            require_whole_run(checkpoint, filename, names, self.optim_wrapper, schedules)
            warn_of_changes(checkpoint['meta'], self.cfg, filename)
            checkpoint['message_hub'] = from_plain(checkpoint['message_hub'])
            if self.sharded:
                checkpoint['optimizer'] = self.sharded.scatter_optimizer(
                    self.optim_wrapper, checkpoint['optimizer']
                )
        self.call_hook('after_load_checkpoint', checkpoint=checkpoint)
        if not self._resume:
            checkpoint['state_dict'] = to_lora_names(checkpoint['state_dict'], names)
        ignored = None if self._resume else self.cfg.get('load_from_ignore', [])
        self.logger.info(load_start_weights(model, checkpoint['state_dict'], filename, ignored))
        self._has_loaded = True
        return checkpoint

    def call_hook(self, fn_name: str, **kwargs) -> None:
        """Calls the hooks; all ranks evaluate one model; converts checkpoints that are made."""
        if fn_name in ('before_val_epoch', 'before_test_epoch'):
            share_statistics(self.model)
        super().call_hook(fn_name, **kwargs)
        if fn_name == 'before_save_checkpoint':
            checkpoint = kwargs['checkpoint']
            for key in checkpoint.keys() - {'state_dict', 'optimizer'}:
                checkpoint[key] = to_plain(checkpoint[key])
            checkpoint.update(self._gathered)

    def save_checkpoint(
        self, out_dir: str, filename: str, *args, save_optimizer: bool = True, **kwargs
    ) -> None:
        """Saves on the first rank, to a file that appears only when it is complete."""
        share_statistics(self.model)
        if self.sharded:
            self._gathered = {'state_dict': self.sharded.gather_weights()}
            if save_optimizer:
                self._gathered['optimizer'] = self.sharded.gather_optimizer(self.optim_wrapper)
        self._write_checkpoint(out_dir, filename, *args, save_optimizer=save_optimizer, **kwargs)
        self._gathered = {}

    @master_only
    def _write_checkpoint(self, out_dir: str, filename: str, *args, **kwargs) -> None:
        """Writes to a temporary file, which is renamed when it is on the disk."""
        with atomic_write(Path(out_dir, filename)) as path:
            super().save_checkpoint(out_dir, path.name, *args, **kwargs)

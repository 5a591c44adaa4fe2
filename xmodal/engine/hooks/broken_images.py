"""Images that cannot be read."""

import torch
from mmengine.dist import all_gather_object, all_reduce, is_main_process
from mmengine.hooks import Hook
from mmengine.runner import Runner

from xmodal.registry import HOOKS

PATIENCE = 1000  # samples before the share is checked
INTERVAL = 50  # iterations between checks


@HOOKS.register_module()
class BrokenImageHook(Hook):
    """Logs images that cannot be read, and ends the run if there are too many.

    A dataset replaces a broken image by another sample and passes on its path. This hook counts the
    paths. A run that is resumed goes on counting; of several processes the first one's paths count.

    Args:
        limit: largest share of broken images. It is checked after a thousand samples and at the end
            of every epoch.
    """

    def __init__(self, limit: float = 0.001) -> None:
        self.limit = limit
        self.seen = self.batches = 0
        self.broken: list[str] = []

    def before_save_checkpoint(self, runner: Runner, checkpoint: dict) -> None:
        """Adds what was counted, by the process that saves."""
        counted = {'seen': self.seen, 'batches': self.batches, 'broken': list(self.broken)}
        checkpoint['broken_images'] = counted

    def after_load_checkpoint(self, runner: Runner, checkpoint: dict) -> None:
        """Goes on counting: all processes have seen as many samples."""
        if runner._resume and (counted := checkpoint.get('broken_images')):
            self.seen, self.batches = counted['seen'], counted['batches']
            self.broken = list(counted['broken']) if is_main_process() else []

    def after_train_iter(self, runner: Runner, batch_idx: int, data_batch: dict, **_) -> None:
        """Counts the broken images of a batch, and checks the share at intervals."""
        self.batches += 1
        for sample in data_batch['data_samples']:
            self.seen += 1
            for path in sample.metainfo.get('skipped', ()):
                runner.logger.warning(f'broken image, replaced by another: {path}')
                self.broken.append(path)
        if self.every_n_train_iters(runner, INTERVAL):
            self._check(runner, PATIENCE)

    def after_train_epoch(self, runner: Runner) -> None:
        """Checks the share; after a whole epoch without regard to ``PATIENCE``."""
        is_whole_epoch = self.batches >= len(runner.train_dataloader)
        self._check(runner, 0 if is_whole_epoch else PATIENCE)

    def _check(self, runner: Runner, patience: int) -> None:
        """Ends the run if the share over all ranks is above the limit."""
        device = next(runner.model.parameters()).device
        counts = torch.tensor([self.seen, len(self.broken)], dtype=torch.float64, device=device)
        all_reduce(counts)
        seen, broken = counts.tolist()
        runner.message_hub.update_scalar('train/broken_images', broken)
        if seen < patience or broken <= self.limit * seen:
            return
        paths = sorted({path for part in all_gather_object(self.broken) for path in part})
        listed = '\n  '.join(paths[:50]) + ('\n  …' if len(paths) > 50 else '')
        raise RuntimeError(
            f'{broken:.0f} of {seen:.0f} images are broken, more than the limit of '
            f'{self.limit:.1%} (BrokenImageHook.limit). Repair them, remove them from the '
            f'annotation file, or raise the limit:\n  {listed}'
        )

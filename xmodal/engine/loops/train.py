"""The training loop."""

from itertools import islice

from mmengine.runner import EpochBasedTrainLoop

from xmodal.registry import LOOPS


@LOOPS.register_module()
class ResumableEpochTrainLoop(EpochBasedTrainLoop):
    """MMEngine's epochs, that go on in the middle of one exactly where they were left.

    The sampler (or a streamed data set) is told the epoch and how many samples of it were seen;
    these are not loaded again. The last iteration of an epoch always steps, with the mean of what
    was accumulated, so that no gradients are pending when an epoch's checkpoint is saved.
    """

    def run_epoch(self) -> None:
        """Iterates what is left of the current epoch."""
        self.runner.call_hook('before_train_epoch')
        self.runner.model.train()
        iterations = len(self.dataloader)
        seen = self._iter - self._epoch * iterations
        if not 0 <= seen <= iterations:
            raise ValueError(
                f'the checkpoint is at iteration {self._iter} of epoch {self._epoch + 1}, but an '
                f'epoch has {iterations} iterations now: resume with the data, batch size, '
                'accumulation and number of processes it was saved with, or start from its weights '
                'by load_from'
            )
        self.runner.optim_wrapper.initialize_count_status(self.runner.model, seen, iterations)
        for source in (self.dataloader.sampler, self.dataloader.dataset):
            if hasattr(source, 'skip'):
                source.set_epoch(self._epoch)
                source.skip(seen * self.dataloader.batch_size)
        # With everything seen (saved after an epoch's last iteration) only the hooks are left.
        if seen < iterations:
            # A streamed data set has no end of its own.
            rest = islice(self.dataloader, iterations - seen)
            for index, batch in enumerate(rest, start=seen):
                self.run_iter(index, batch)
        self.runner.call_hook('after_train_epoch')
        self._epoch += 1

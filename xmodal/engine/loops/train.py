"""The training loop."""

from itertools import islice

from mmengine.runner import EpochBasedTrainLoop
from torch import nn
from torch.utils.data import IterableDataset

from xmodal.engine.loops.evaluation import single_loops
from xmodal.engine.validation import check_validation
from xmodal.errors import ConfigError
from xmodal.registry import LOOPS

#: Where the message hub has the last epoch whose validation began. A checkpoint that is saved in
#: the validation, because it is the best, knows the metrics.
VALIDATED = 'last_validated_epoch'
_ADVICE = (
    'resume with the data, batch size, accumulation and number of processes of the interrupted '
    'run, or start from its weights with load_from'
)


@LOOPS.register_module()
class ResumableEpochTrainLoop(EpochBasedTrainLoop):
    """MMEngine's epochs, resumed in the middle of an epoch exactly where they stopped.

    The sampler (or a streamed data set) gets the epoch and the number of its batches that were seen
    already; these are not loaded again, unless neither has ``skip``. The last iteration of an epoch
    always updates the weights, with the mean of the accumulated gradients, so that no gradients are
    pending when the checkpoint of an epoch is saved.

    The checkpoint of an epoch is saved before the epoch is validated. A run that goes on from it
    validates first, unless it was saved again with the metrics, as the best one. Otherwise a run
    that was interrupted in between would lack them, and would not know which one is the best.
    """

    def run(self) -> nn.Module:
        """Trains, from where the run is.

        Raises:
            ConfigError: when the sampler does not say the epoch to a data set that needs it.
            ValueError: when it goes on with epochs of another length.
            BrokenImageError: when an image of the validation is broken.
        """
        self._require_epoch_of_samples()
        self._require_same_epochs()
        if self.runner.val_loop is not None:
            validated = [x.dataloader.dataset for _, x in single_loops(self.runner.val_loop)]
            check_validation(self.dataloader.dataset, validated)
        self.runner.call_hook('before_train')
        is_after_epoch = self._epoch and self._iter == self._epoch * len(self.dataloader)
        last_validated = self.runner.message_hub.runtime_info.get(VALIDATED)
        if is_after_epoch and last_validated != self._epoch:
            self._validate_if_due()
        while self._epoch < self._max_epochs and not self.stop_training:
            self.run_epoch()
            self._validate_if_due()
        self.runner.call_hook('after_train')
        return self.runner.model

    def _require_epoch_of_samples(self) -> None:
        """Refuses a sampler of indices alone: all epochs would have the same crops and captions."""
        dataset = self.dataloader.dataset
        draws = hasattr(dataset, 'set_run_seed') and not isinstance(dataset, IterableDataset)
        if draws and not isinstance(next(iter(self.dataloader.batch_sampler))[0], tuple):
            raise ConfigError(
                'train_dataloader.sampler gives indices alone, and the data set draws the crop and '
                'the caption of a sample by index and epoch, so that all epochs would have the '
                "same: write type='EpochSampler', or yield (index, epoch)"
            )

    def _require_same_epochs(self) -> None:
        """Refuses to go on where an epoch had another number of iterations.

        With half as many, the first epoch of before would count as two, and one would be left out.
        """
        saved, iterations = self.runner.message_hub.runtime_info, len(self.dataloader)
        if self._iter and {'max_iters', 'max_epochs'} <= saved.keys():
            before = saved['max_iters'] // saved['max_epochs']
            if before != iterations:
                raise ValueError(
                    f'the checkpoint is of a run with {before} iterations in an epoch, and an '
                    f'epoch now has {iterations}: {_ADVICE}'
                )

    def _validate_if_due(self) -> None:
        """Validates after the epochs of ``val_interval``, and after the last one."""
        self._decide_current_val_interval()
        is_due = self._epoch % self.val_interval == 0 or self._epoch == self._max_epochs
        if self.runner.val_loop is not None and self._epoch >= self.val_begin and is_due:
            self.runner.message_hub.update_info(VALIDATED, self._epoch)
            self.runner.val_loop.run()

    def run_epoch(self) -> None:
        """Runs the remaining iterations of the current epoch."""
        self.runner.call_hook('before_train_epoch')
        self.runner.model.train()
        iterations = len(self.dataloader)
        seen = self._iter - self._epoch * iterations
        if not 0 <= seen <= iterations:
            raise ValueError(
                f'the checkpoint is at iteration {self._iter} of epoch {self._epoch + 1}, but an '
                f'epoch now has {iterations} iterations: {_ADVICE}'
            )
        loaded = 0  # of the batches that were seen, those that are loaded again
        for source in (self.dataloader.sampler, self.dataloader.dataset):
            if hasattr(source, 'skip'):
                source.set_epoch(self._epoch)
                source.skip(seen, self.dataloader.batch_size)
                break
        else:
            loaded = seen
        # After the last iteration of an epoch only the hooks are left.
        if seen < iterations:
            wrapper = self.runner.optim_wrapper
            wrapper.initialize_count_status(self.runner.model, seen, iterations)
            if not wrapper.should_update():
                raise ValueError(
                    f'the checkpoint is at iteration {seen} of an epoch, where a step of '
                    'optim_wrapper.accumulative_counts batches has begun, and it does not have '
                    f'their gradients: {_ADVICE}'
                )
            # A streamed data set has no end.
            rest = islice(self.dataloader, loaded, loaded + iterations - seen)
            for index, batch in enumerate(rest, start=seen):
                self.run_iter(index, batch)
        self.runner.call_hook('after_train_epoch')
        self._epoch += 1

"""Whether anchors find what their words name, in the log of a run."""

import torch
from mmengine.hooks import Hook
from mmengine.runner import Runner

from xmodal.engine.wrappers import unwrap
from xmodal.errors import ConfigError
from xmodal.evaluation.first_captions import encode_first_captions
from xmodal.evaluation.location import map_aucs, read_objects, words_on_objects
from xmodal.registry import HOOKS


@HOOKS.register_module()
class AnchorAucHook(Hook):
    """Logs ``anchor_auc`` at the start and after each epoch: do anchors find the named objects?

    It is the area under the ROC curve of the similarity of a word to the patches or regions
    (Eq. 3), the mean over the groups, against the boxes of the objects that the word names; the
    mean over all such words of the first caption of some validation images. 0.5 says nothing, 1 is
    perfect. ``anchor_auc/group_0`` and so on are the areas of each group alone. It draws no random
    number and changes no weight, so that it may be one of ``default_hooks``, which
    ``tools/ablate.py`` does not count among the settings of a run.

    Args:
        instances: COCO instances of the validation images.
        images: number of validation images.
    """

    def __init__(self, instances: str, images: int = 100) -> None:
        if images < 1:
            raise ConfigError(f'AnchorAucHook: images={images}, expected at least 1')
        self.objects, self.images = read_objects(instances), images

    def before_train(self, runner: Runner) -> None:
        """Checks the model and the run, and measures the start of a run that is not resumed.

        Raises:
            ConfigError: when the model has no anchors, the run no validation, or no word of the
                captions names an object of the images.
        """
        model = unwrap(runner.model)
        position = getattr(getattr(model, 'backbone', None), 'position', None)
        if not hasattr(model, 'relate'):
            raise ConfigError(
                'AnchorAucHook needs a model that relates images and texts, such as an '
                f'AlbefPretrainer, found {type(model).__name__}: leave the hook out'
            )
        if not getattr(position, 'has_similarities', False):
            raise ConfigError(
                'AnchorAucHook needs a position with similarities, such as model.backbone.position='
                f"dict(type='AnchorRelativePosition'), found {type(position).__name__}: leave the "
                'hook out'
            )
        if runner.val_loop is None:
            raise ConfigError('AnchorAucHook measures validation images: set val_dataloader')
        if not runner.iter:
            self._measure(runner)

    def after_train_epoch(self, runner: Runner) -> None:
        """Measures the epoch."""
        self._measure(runner)

    @torch.no_grad()
    def _measure(self, runner: Runner) -> None:
        """Logs the area."""
        model = runner.whole_model().eval()
        loader = runner.val_loop.dataloader
        count = min(self.images, len(loader.dataset))
        aucs = []
        first = int(model.backbone.image_encoder.has_cls)
        captions = encode_first_captions(model, loader.dataset, range(count), loader.collate_fn)
        for batch, _, image, text in captions:
            maps = model.relate(image, text).similarity[:, first:, 1:].float().cpu()
            for row, index, on_object, _ in words_on_objects(model, batch, image, self.objects):
                aucs.append(map_aucs(maps[row, : len(on_object), index], on_object))
        if not aucs:
            raise ConfigError(
                'AnchorAucHook: no word of the captions is a name or attribute of the instances of '
                'its image: are hook.instances those of val_dataloader?'
            )
        mean, *groups = torch.stack(aucs).double().mean(0).tolist()
        scalars = {f'anchor_auc/group_{group}': auc for group, auc in enumerate(groups)}
        runner.visualizer.add_scalars({'anchor_auc': mean, **scalars}, step=runner.iter)
        by_group = ', '.join(f'{auc:.3f}' for auc in groups)
        runner.logger.info(
            f'anchor_auc: {mean:.3f}, by group {by_group} ({len(aucs)} words, {count} images)'
        )

"""Evaluation by image-text retrieval."""

import numpy as np
import torch
from mmengine.dist import get_world_size, is_main_process
from mmengine.runner import Runner
from torch import nn
from torch.utils.data import DataLoader

from xmodal.engine.loops.encoded_gallery import EncodedGallery
from xmodal.engine.loops.evaluation import EvaluationLoop
from xmodal.engine.wrappers import unwrap
from xmodal.errors import ConfigError
from xmodal.evaluation.retrieval import Gallery, fold_of_images
from xmodal.evaluation.retrieval_results import evaluate_gallery, write_rankings
from xmodal.evaluation.scores import ScoreMatrix, write_scores
from xmodal.files import require_new
from xmodal.registry import LOOPS, TASK_UTILS


@LOOPS.register_module()
class RetrievalLoop(EvaluationLoop):
    """Encodes a test set once, scores all images with all texts, and evaluates the ranking.

    Every rank encodes its share of the set. The numbers do not depend on the number of ranks.

    Args:
        runner: the runner.
        dataloader: one sample per image with all its captions (``test_mode``).
        evaluator: config of the metric, ``RetrievalMetric``, or of a list of them.
        scorer: config of the scorer, such as ``ITMReranker`` or ``AllPairsScorer``.
        save_rankings: a JSON file for the ten best of every query; must not exist yet.
        save_scores: an ``.npz`` file for the scores of all pairs; must not exist yet.
            ``tools/analysis/ensemble.py`` averages such files.

    Raises:
        ConfigError: when the sampler repeats images for several ranks, or the scorer takes other
            models.
        ValueError: when the images do not divide into the folds of a metric.
        FileExistsError: when one of the files exists already.
    """

    def __init__(
        self,
        runner: Runner,
        dataloader: DataLoader | dict,
        evaluator: dict | list[dict],
        scorer: dict,
        save_rankings: str | None = None,
        save_scores: str | None = None,
    ) -> None:
        super().__init__(runner, dataloader, evaluator)
        if get_world_size() > 1 and getattr(self.dataloader.sampler, 'round_up', False):
            raise ConfigError(
                'RetrievalLoop needs each image once, and its sampler repeats some, so that all '
                "ranks have as many: sampler=dict(type='DefaultSampler', shuffle=False, "
                'round_up=False)'
            )
        if save_scores:
            require_new('save_scores', save_scores)
        if save_rankings:
            require_new('save_rankings', save_rankings)
        self.folds = {getattr(metric, 'folds', 1) for metric in self.evaluator.metrics}
        for folds in self.folds:  # now, and not after the training or the scoring of all pairs
            fold_of_images(len(self.dataloader.dataset), folds)
        self.scorer = TASK_UTILS.build(scorer)
        self.scorer.check(self.folds)
        self.scorer.check_model(unwrap(runner.model))
        self.save_rankings, self.save_scores = save_rankings, save_scores

    @torch.no_grad()
    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """Scores all pairs, prints a table for each metric, and returns the metrics."""
        encoded = self.encode(model)
        gallery = self.scorer.score(model, encoded, self.folds)
        metrics = evaluate_gallery(self.evaluator, gallery, encoded.captions)
        if is_main_process():
            self._save(model, encoded, gallery, metrics)
        return metrics

    @torch.no_grad()
    def encode(self, model: nn.Module) -> EncodedGallery:
        """The whole test set, of which each rank encodes its share."""

        def encoded(batch: dict) -> EncodedGallery:
            return self.scorer.encode(model, **model.data_preprocessor(batch, False))

        bar = self.batches('encoding')
        batches = [encoded(batch) for batch in bar]
        if not batches:  # there are fewer images than ranks
            first = self.dataloader.collate_fn([self.dataloader.dataset[0]])
            batches = [encoded(first).select(torch.arange(0))]
        share = EncodedGallery.join(batches)
        del batches  # they would double the memory of the share while it is gathered
        return share.gather(self.scorer.gathers_image_tokens)

    def _save(
        self,
        model: nn.Module,
        encoded: EncodedGallery,
        gallery: Gallery,
        metrics: dict[str, float],
    ) -> None:
        """Writes the files that were asked for."""
        if self.save_scores:
            matrix = ScoreMatrix(
                self.scorer.saved_scores(model, gallery.scores).numpy(),
                gallery.text_to_image.numpy(),
                np.array(encoded.image_ids),
                np.array(encoded.captions),
            )
            if gallery.t2i_scores is not None:
                t2i_scores = self.scorer.saved_scores(model, gallery.t2i_scores)
                matrix = matrix._replace(t2i_scores=t2i_scores.numpy())
            write_scores(self.save_scores, matrix)
        if self.save_rankings:
            write_rankings(
                self.save_rankings,
                gallery,
                encoded.captions,
                encoded.image_names,
                metrics,
                None if self.runner.iter else self.runner._load_from,
                {x.prefix or '': x.folds for x in self.evaluator.metrics if hasattr(x, 'folds')},
            )

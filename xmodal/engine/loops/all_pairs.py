"""Evaluation that scores every image with every caption."""

from typing import NamedTuple

import numpy as np
import torch
from mmengine.dist import all_gather_object, get_world_size, is_main_process
from mmengine.runner import Runner
from torch import Tensor, nn
from torch.utils.data import DataLoader
from tqdm import tqdm

from xmodal.engine.loops.evaluation import EvaluationLoop
from xmodal.engine.loops.retrieval import print_metrics, write_rankings
from xmodal.evaluation.retrieval import Gallery, RetrievalMetric
from xmodal.evaluation.scores import ScoreMatrix, write_scores
from xmodal.files import require_new
from xmodal.registry import LOOPS, METRICS
from xmodal.structures import Tokens


class EncodedShare(NamedTuple):
    """What one rank encodes of a test set.

    Attributes:
        images: token sets of its images, (images, R, D).
        words: of all its captions, one caption after the other, (words, D). In one tensor, since
            each of many small ones would take the memory of all along to another rank.
        lengths: words of each caption, (captions,) int64, the captions of an image side by side.
        counts: captions of each image, (images,) int64.
        positions: place of each image in the data set, (images,) int64.
        image_ids: of its images.
        captions: the captions.
    """

    images: Tokens
    words: Tensor
    lengths: Tensor
    counts: Tensor
    positions: Tensor
    image_ids: list[int]
    captions: list[str]

    @property
    def texts(self) -> list[Tensor]:
        """The words of each caption, (L, D)."""
        return list(self.words.split(self.lengths.tolist()))

    def cpu(self) -> 'EncodedShare':
        """The same in the memory of the host."""
        return self._replace(images=self.images.to('cpu'), words=self.words.cpu())

    @classmethod
    def join(cls, shares: list['EncodedShare']) -> 'EncodedShare':
        """The whole test set in the order of the data set, whatever the number of ranks."""
        counts = torch.cat([share.counts for share in shares])
        order = torch.cat([share.positions for share in shares]).argsort()
        # Places of each image's captions, in the order of the images.
        own = torch.arange(int(counts.sum())).split(counts.tolist())
        columns = torch.cat([own[row] for row in order.tolist()])
        texts, image_ids, captions = (
            [item for share in shares for item in getattr(share, name)]
            for name in ('texts', 'image_ids', 'captions')
        )
        return cls(
            images=Tokens.join([share.images for share in shares]).select(order),
            words=torch.cat([texts[column] for column in columns.tolist()]),
            lengths=torch.cat([share.lengths for share in shares])[columns],
            counts=counts[order],
            positions=torch.arange(len(order)),
            image_ids=[image_ids[row] for row in order.tolist()],
            captions=[captions[column] for column in columns.tolist()],
        )


@LOOPS.register_module()
class MatchingLoop(EvaluationLoop):
    """Encodes images and captions once each, and scores all pairs with the model's similarity.

    Several ranks share out the encoding and the scoring. Ranking is by logits in float32:
    probabilities of good pairs round to 1 and tie.

    Args:
        runner: the runner.
        dataloader: one sample an image with all its captions (``test_mode``).
        evaluator: config of the metric, ``RetrievalMetric``; or several by name, which then stands
            before their figures: ``{'1k': dict(type='RetrievalMetric', folds=5), '5k': …}``.
        dtype: of the large products, 'float16' or 'bfloat16'; None for float32.
        compile: compile the scoring of a tile (on GPUs).
        save_scores: an ``.npz`` file for the scores of all pairs, which must not exist yet;
            ``tools/analysis/ensemble.py`` averages several.
        save_rankings: a JSON file for the ten best of every query; must not exist yet.
    """

    def __init__(
        self,
        runner: Runner,
        dataloader: DataLoader | dict,
        evaluator: dict,
        dtype: str | None = None,
        compile: bool = False,
        save_scores: str | None = None,
        save_rankings: str | None = None,
    ) -> None:
        super().__init__(runner, dataloader)
        if save_scores:
            require_new('save_scores', save_scores)
        if save_rankings:
            require_new('save_rankings', save_rankings)
        if dtype not in (None, 'float16', 'bfloat16'):
            raise ValueError(f"test_cfg.dtype='{dtype}', expected 'float16', 'bfloat16' or None")
        self.metrics = build_metrics(evaluator)
        self.options = {'dtype': dtype and getattr(torch, dtype), 'compile': compile}
        self.save_scores, self.save_rankings = save_scores, save_rankings

    @torch.no_grad()
    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """Scores all pairs, prints a table for each metric, and returns the figures."""
        test_set = self._encode(model)
        logits = model.score_all_pairs(
            test_set.images, test_set.texts, progress=True, **self.options
        )
        owner = torch.repeat_interleave(torch.arange(len(logits)), test_set.counts)
        gallery = Gallery(logits, owner)
        metrics = measure(self.metrics, gallery)
        if self.save_scores and is_main_process():
            scores = model.similarity.to_scores(logits.double())
            ids, captions = np.array(test_set.image_ids), np.array(test_set.captions)
            write_scores(
                self.save_scores, ScoreMatrix(scores.numpy(), owner.numpy(), ids, captions)
            )
        if self.save_rankings and is_main_process():
            # Features, not pictures, are on the disk: an image is known by its number.
            names = [f'image {number}' for number in test_set.image_ids]
            write_rankings(self.save_rankings, gallery, test_set.captions, names, metrics)
        return metrics

    def _encode(self, model: nn.Module) -> EncodedShare:
        """The whole test set, encoded; each rank encodes its share."""
        images, words, lengths, counts, positions, image_ids, captions = ([] for _ in range(7))
        for batch in tqdm(self.dataloader, 'encoding', disable=not is_main_process()):
            prepared = model.data_preprocessor(batch, False)
            inputs, samples = prepared['inputs'], prepared['data_samples']
            images.append(model.encode_image(inputs.regions))
            text = model.encode_text(inputs.input_ids, inputs.attention_mask)
            mask = text.full_mask()
            words.append(text.embeddings[mask])
            lengths.append(mask.sum(1).cpu())
            counts += [len(sample.text) for sample in samples]
            positions += [sample.sample_index for sample in samples]
            image_ids += [sample.image_id for sample in samples]
            captions += [caption for sample in samples for caption in sample.text]
        share = EncodedShare(
            Tokens.join(images),
            torch.cat(words),
            torch.cat(lengths),
            torch.tensor(counts),
            torch.tensor(positions),
            image_ids,
            captions,
        )
        if get_world_size() == 1:
            return share
        return EncodedShare.join(all_gather_object(share.cpu()))


def build_metrics(evaluator: dict) -> dict[str, RetrievalMetric]:
    """The metrics of an evaluator's config by name; '' for that of a single one."""
    named = {'': evaluator} if 'type' in evaluator else evaluator
    return {name: METRICS.build(own) for name, own in named.items()}


def measure(metrics: dict[str, RetrievalMetric], gallery: Gallery) -> dict[str, float]:
    """The figures of all metrics, with the metric's name before them; prints a table for each."""
    figures = {}
    for name, metric in metrics.items():
        own = metric(gallery)
        figures |= {f'{name}/{key}' if name else key: value for key, value in own.items()}
        if is_main_process():
            print_metrics(own, gallery, metric.folds)
    return figures

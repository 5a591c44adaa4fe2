"""Evaluation by retrieval, in two stages."""

from pathlib import Path
from typing import NamedTuple

import torch
from mmengine.dist import all_gather_object, get_dist_info, is_main_process
from mmengine.runner import Runner
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn
from torch.utils.data import DataLoader
from tqdm import tqdm

from xmodal.engine.loops.evaluation import EvaluationLoop
from xmodal.engine.loops.matching import match_pairs
from xmodal.evaluation.retrieval import (
    RECALLS,
    Gallery,
    candidate_pairs,
    two_stage_scores,
)
from xmodal.files import require_new, write_json
from xmodal.registry import LOOPS, METRICS
from xmodal.structures import Tokens


class EncodedSet(NamedTuple):
    """The images of one rank with their texts, encoded; on the CPU.

    Attributes:
        image_tokens: (images, 1 + M, D).
        image_embeddings: (images, d).
        text_ids: word pieces of each text, (texts, N), padded; and their mask.
        text_mask: (texts, N) bool.
        text_embeddings: (texts, d).
        owner: row of the image of each text, (texts,).
        positions: place of each image in the data set, (images,).
        image_paths: where the images came from.
        captions: the texts themselves.
    """

    image_tokens: Tokens
    image_embeddings: Tensor
    text_ids: Tensor
    text_mask: Tensor
    text_embeddings: Tensor
    owner: Tensor
    positions: Tensor
    image_paths: list[str]
    captions: list[str]


@LOOPS.register_module()
class RetrievalLoop(EvaluationLoop):
    """Encodes a test set, ranks by vectors, and ranks the best again by image-text matching.

    Every rank encodes its share of the set. Vectors and word pieces are gathered; the images'
    tokens stay where they are, and each rank judges the pairs of its own images.

    Args:
        runner: the runner.
        dataloader: one sample an image with all its captions (``test_mode``).
        evaluator: config of the metric, ``RetrievalMetric``.
        rerank_topk: k, candidates of each query that are ranked again; 0 for none.
        add_similarity: re-rank by the sum of the matching logit and the contrastive logit, instead
            of the matching logit alone (ALBEF's way). The negatives of matching are drawn by
            contrastive similarity, so that matching learns what that leaves open (BLIP adds too).
        pair_batch: pairs of an image judged at once.
        save_rankings: a JSON file for the ten best of every query; must not exist yet.
    """

    def __init__(
        self,
        runner: Runner,
        dataloader: DataLoader | dict,
        evaluator: dict,
        rerank_topk: int = 128,
        add_similarity: bool = False,
        pair_batch: int = 128,
        save_rankings: str | None = None,
    ) -> None:
        super().__init__(runner, dataloader)
        if save_rankings:
            require_new('save_rankings', save_rankings)
        self.metric = METRICS.build(evaluator)
        self.rerank_topk, self.add_similarity = rerank_topk, add_similarity
        self.pair_batch = pair_batch
        self.save_rankings = save_rankings

    @torch.no_grad()
    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """Scores all pairs, prints a table, and returns the metrics."""
        gallery, captions, paths = self.score(model)
        metrics = self.metric(gallery)
        if gallery.similarity is not None:
            first = self.metric(Gallery(gallery.similarity, gallery.owner))
            metrics |= {f'first_stage/{name}': value for name, value in first.items()}
        if is_main_process():
            print_metrics(metrics, gallery, self.metric.folds)
            if self.save_rankings:
                write_rankings(self.save_rankings, gallery, captions, paths, metrics)
        return metrics

    def score(self, model: nn.Module) -> tuple[Gallery, list[str], list[str]]:
        """Scores of all images and texts, with the captions and image paths in that order."""
        own = self._encode(model)
        parts = all_gather_object(own._replace(image_tokens=None))
        # In the order of the data set, whatever the number of ranks.
        positions = torch.cat([part.positions for part in parts])
        order = positions.argsort()
        place = torch.empty_like(order)
        place[order] = torch.arange(len(order))
        offsets = torch.tensor([0] + [len(part.positions) for part in parts]).cumsum(0)
        owner = torch.cat(
            [place[part.owner + offset] for part, offset in zip(parts, offsets, strict=False)]
        )
        text_order = owner.argsort(stable=True)
        owner = owner[text_order]
        image_embeddings = torch.cat([part.image_embeddings for part in parts])[order]
        text_embeddings = torch.cat([part.text_embeddings for part in parts])[text_order]
        similarity = image_embeddings @ text_embeddings.T

        captions = [caption for part in parts for caption in part.captions]
        captions = [captions[i] for i in text_order.tolist()]
        paths = [path for part in parts for path in part.image_paths]
        paths = [paths[i] for i in order.tolist()]
        if not self.rerank_topk or 'itm' not in model.heads:
            return Gallery(similarity, owner), captions, paths
        rank = get_dist_info()[0]
        own_rows = place[offsets[rank] : offsets[rank + 1]]
        texts = _pad_texts(parts, text_order)
        pairs, matching = self._rerank(model, own, own_rows, texts, similarity, owner)
        gathered = all_gather_object((pairs, matching))
        pairs = torch.cat([part[0] for part in gathered])
        matching = torch.cat([part[1] for part in gathered])
        if self.add_similarity:
            own_similarity = similarity[pairs[:, 0], pairs[:, 1]]
            device = next(model.parameters()).device
            matching = matching + model.contrastive_head.scale(own_similarity.to(device)).cpu()
        scores = two_stage_scores(similarity, pairs, matching)
        return Gallery(scores, owner, similarity), captions, paths

    def _encode(self, model: nn.Module) -> EncodedSet:
        """Encodes this rank's share."""
        images, vectors, texts, masks, text_embeddings, owner = [], [], [], [], [], []
        positions, paths, captions = [], [], []
        for batch in tqdm(self.dataloader, 'encoding', disable=not is_main_process()):
            inputs = model.data_preprocessor(batch, False)
            samples, inputs = inputs['data_samples'], inputs['inputs']
            image = model.encode_image(inputs.images)
            text = model.encode_text(inputs.input_ids, inputs.attention_mask)
            counts = torch.tensor([len(sample.text) for sample in samples])
            owner.append(torch.repeat_interleave(torch.arange(len(samples)) + len(paths), counts))
            images.append(image.tokens.embeddings.cpu())
            vectors.append(image.embedding.float().cpu())
            texts += list(inputs.input_ids.cpu())
            masks += list(inputs.attention_mask.cpu())
            text_embeddings.append(text.embedding.float().cpu())
            positions += [sample.sample_index for sample in samples]
            paths += [sample.image_path for sample in samples]
            captions += [caption for sample in samples for caption in sample.text]
        tokens = Tokens(torch.cat(images), grid_size=image.tokens.grid_size)
        return EncodedSet(
            tokens,
            torch.cat(vectors),
            nn.utils.rnn.pad_sequence(texts, batch_first=True),
            nn.utils.rnn.pad_sequence(masks, batch_first=True),
            torch.cat(text_embeddings),
            torch.cat(owner),
            torch.tensor(positions),
            paths,
            captions,
        )

    def _rerank(
        self,
        model: nn.Module,
        own: EncodedSet,
        own_rows: Tensor,
        texts: tuple[Tensor, Tensor],
        similarity: Tensor,
        owner: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Matching scores of the candidate pairs whose image is this rank's."""
        local = torch.full((len(similarity),), -1)
        local[own_rows] = torch.arange(len(own_rows))
        pairs = candidate_pairs(similarity, owner, self.rerank_topk, self.metric.folds)
        pairs = pairs[local[pairs[:, 0]] >= 0]
        own_pairs = torch.stack([local[pairs[:, 0]], pairs[:, 1]], 1)
        return pairs, match_pairs(model, own.image_tokens, texts, own_pairs, self.pair_batch)


def _pad_texts(parts: list[EncodedSet], order: Tensor) -> tuple[Tensor, Tensor]:
    """Word pieces and masks of all ranks' texts, in the order of the data set."""
    ids = [row for part in parts for row in part.text_ids]
    masks = [row for part in parts for row in part.text_mask]
    padded = (nn.utils.rnn.pad_sequence(rows, batch_first=True) for rows in (ids, masks))
    return tuple(rows[order] for rows in padded)


def print_metrics(metrics: dict[str, float], gallery: Gallery, folds: int = 1) -> None:
    """Prints a table of both directions and, where there are two, both stages."""
    images, texts = gallery.scores.shape
    where = f' in {folds} folds, their mean' if folds > 1 else ''
    table = Table(title=f'Retrieval among {images} images and {texts} texts{where}')
    for heading in ('', *(f'R@{k}' for k in RECALLS), 'median rank', 'MRR', 'mean recall'):
        table.add_column(heading, justify='right' if heading else 'left')
    stages = {'': ''}
    if gallery.similarity is not None:
        stages = {'first_stage/': ', by vectors', '': ', re-ranked'}
    names = [*(f'R@{k}' for k in RECALLS), 'median_rank', 'mrr']
    for stage, how in stages.items():
        for way, what in (('i2t', 'texts of an image'), ('t2i', 'image of a text')):
            shown = [f'{metrics[f"{stage}{way}/{name}"]:.1f}' for name in names]
            mean = f'{metrics[f"{stage}mean_recall"]:.1f}' if way == 't2i' else ''
            table.add_row(what + how, *shown, mean, end_section=way == 't2i')
    Console(width=100).print(table)


def write_rankings(
    file: str,
    gallery: Gallery,
    captions: list[str],
    paths: list[str],
    metrics: dict[str, float],
) -> None:
    """Writes the metrics, the ten best texts of every image and images of every text."""
    best_texts = gallery.scores.topk(min(10, len(captions)), 1).indices.tolist()
    best_images = gallery.scores.topk(min(10, len(paths)), 0).indices.T.tolist()
    content = {
        'metrics': metrics,
        'images': paths,
        'texts': captions,
        'owner': gallery.owner.tolist(),
        'texts_of_image': best_texts,
        'images_of_text': best_images,
    }
    write_json(Path(file), content)

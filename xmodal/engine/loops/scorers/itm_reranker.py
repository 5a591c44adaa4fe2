"""Scores in two stages: ITC for all pairs, then ITM for the best."""

from collections.abc import Collection

import torch
from mmengine.dist import all_gather_object
from torch import Tensor, nn

from xmodal.engine.loops.encoded_gallery import EncodedGallery
from xmodal.engine.loops.evaluation import unit_embedding_of
from xmodal.engine.loops.scorers.base import Scorer
from xmodal.engine.loops.scorers.match_pairs import match_pairs
from xmodal.errors import ConfigError
from xmodal.evaluation.reranking import find_candidates, two_stage_scores
from xmodal.evaluation.retrieval import Gallery
from xmodal.registry import TASK_UTILS
from xmodal.structures import DataSample, Encoded, ImageTextBatch, PackedTexts

TEXT_BATCH = 32


@TASK_UTILS.register_module()
class ITMReranker(Scorer):
    """Ranks by the ITC cosine, and re-ranks the best candidates of each query by ITM (ALBEF).

    As in ``evaluation`` of ALBEF's ``Retrieval.py``, each direction re-ranks its own candidates:
    the k best texts of each image, and the k best images of each text. A pair that is a candidate
    of both is scored once. All other pairs rank below, by their cosine.

    Embeddings and encoded words are gathered, without padding (1 GB for 25,000 texts of COCO at
    width 768). The image tokens stay on their rank, and each rank scores the pairs of its images. A
    model without an ITM head is evaluated by ITC alone, for which no tokens are kept.

    Args:
        topk: k, number of candidates of each query that are re-ranked; 0 for ITC alone.
        add_similarity: re-rank by the sum of the ITM score and the ITC logit, instead of the ITM
            score alone (as ALBEF does; BLIP adds its cosine). With ``hardness=1`` of the ITM head
            negatives are drawn in proportion to exp(ITC logit), so that its log-odds,
            ``score='difference'``, are what the ITC logit lacks (Bayes' rule).
        pair_batch: number of pairs of an image that are scored at once.
    """

    def __init__(
        self, topk: int = 128, add_similarity: bool = False, pair_batch: int = 128
    ) -> None:
        self.topk, self.add_similarity, self.pair_batch = topk, add_similarity, pair_batch

    def encode(
        self, model: nn.Module, inputs: ImageTextBatch, data_samples: list[DataSample]
    ) -> EncodedGallery:
        """Keeps the embeddings of images and texts, and tokens to re-rank by, on the CPU."""
        image = model.encode_image(inputs.images)
        text = self.encode_texts(model, inputs.input_ids, inputs.attention_mask)
        patches = words = None
        if self.reranks(model):
            patches = image.tokens.to('cpu')
            words = PackedTexts.from_padded(text.tokens.embeddings, text.tokens.full_mask())
            words = words.to('cpu')
        return EncodedGallery.from_samples(
            data_samples,
            [sample.image_path for sample in data_samples],
            patches,
            words,
            unit_embedding_of(image, model, 'ITMReranker').cpu(),
            unit_embedding_of(text, model, 'ITMReranker').cpu(),
        )

    def reranks(self, model: nn.Module) -> bool:
        """Whether there is a second stage."""
        return bool(self.topk) and model.matching_head is not None

    def check(self, folds: Collection[int]) -> None:
        """Refuses metrics with different numbers of folds, and so different candidates."""
        if self.topk and len(folds) > 1:
            raise ConfigError(
                f'the metrics of the evaluator have folds={sorted(folds)}, but ITMReranker finds '
                'its candidates in the folds of one metric: test the metrics one by one, or set '
                'scorer.topk=0'
            )

    def check_model(self, model: nn.Module) -> None:
        """Refuses a model that compares token sets, and has no embeddings."""
        if hasattr(model, 'score_all_pairs'):
            raise ConfigError(
                f'ITMReranker ranks by embeddings, which {type(model).__name__} does not have: '
                "take scorer=dict(type='AllPairsScorer')"
            )

    @staticmethod
    def encode_texts(model: nn.Module, input_ids: Tensor, attention_mask: Tensor) -> Encoded:
        """Encodes texts (T, N), those of like length together, so that there is little padding."""
        order = attention_mask.sum(1).argsort(stable=True)
        batches = []
        for rows in order.split(TEXT_BATCH):
            longest = int(attention_mask[rows[-1]].sum())
            words = input_ids[rows, :longest], attention_mask[rows, :longest]
            batches.append(model.encode_text(*words))
        return Encoded.join(batches).select(order.argsort())

    def score(
        self, model: nn.Module, encoded: EncodedGallery, folds: Collection[int] = (1,)
    ) -> Gallery:
        """ITC scores, or those of both stages."""
        itc_scores = encoded.image_embeddings @ encoded.text_embeddings.T
        text_to_image = encoded.text_to_image
        if not self.reranks(model):
            return Gallery(itc_scores, text_to_image)
        text_candidates, image_candidates = find_candidates(
            itc_scores, text_to_image, self.topk, max(folds)
        )
        pairs, scores = self._match_pairs(
            model, encoded, (text_candidates | image_candidates).nonzero()
        )
        if self.add_similarity:
            cosines = itc_scores[pairs[:, 0], pairs[:, 1]]
            device = next(model.parameters()).device
            scores = scores + model.contrastive_head.scale(cosines.to(device)).cpu()
        reranked = torch.zeros_like(itc_scores)
        reranked[pairs[:, 0], pairs[:, 1]] = scores
        return Gallery(
            two_stage_scores(itc_scores, text_candidates, reranked),
            text_to_image,
            itc_scores,
            t2i_scores=two_stage_scores(itc_scores, image_candidates, reranked),
        )

    def _match_pairs(
        self, model: nn.Module, encoded: EncodedGallery, pairs: Tensor
    ) -> tuple[Tensor, Tensor]:
        """All pairs and their ITM scores, where each rank scores the pairs of its images."""
        local_rows = torch.full((len(encoded.text_counts),), -1)
        local_rows[encoded.image_rows] = torch.arange(len(encoded.image_rows))
        pairs = pairs[local_rows[pairs[:, 0]] >= 0]
        local_pairs = torch.stack([local_rows[pairs[:, 0]], pairs[:, 1]], 1)
        scores = match_pairs(
            model, encoded.image_tokens, encoded.texts, local_pairs, self.pair_batch
        )
        all_pairs, all_scores = zip(*all_gather_object((pairs, scores)), strict=True)
        return torch.cat(all_pairs), torch.cat(all_scores)

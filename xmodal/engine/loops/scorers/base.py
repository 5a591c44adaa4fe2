"""The interface of scorers."""

from abc import ABC, abstractmethod
from collections.abc import Collection

from torch import Tensor, nn

from xmodal.engine.loops.encoded_gallery import EncodedGallery
from xmodal.evaluation.retrieval import Gallery
from xmodal.structures import DataSample, ImageTextBatch


class Scorer(ABC):
    """Scores every image of a test set with every text: encode → gather → score.

    :class:`xmodal.engine.loops.retrieval.RetrievalLoop` calls :meth:`encode` for each batch of a
    rank's share, gathers the results of all ranks, and calls :meth:`score` once.

    Attributes:
        gathers_image_tokens: every rank needs the tokens of all images. Otherwise the tokens stay
            on the rank that encoded them (``EncodedGallery.image_rows``).
    """

    gathers_image_tokens = False

    def check(self, folds: Collection[int]) -> None:  # noqa: B027 - most scorers take all
        """Raises ConfigError for numbers of folds of the metrics that the scorer does not take."""

    def check_model(self, model: nn.Module) -> None:  # noqa: B027 - as above
        """Raises ConfigError for a model that the scorer does not take, before a run has begun."""

    @abstractmethod
    def encode(
        self,
        model: nn.Module,
        inputs: ImageTextBatch,
        data_samples: list[DataSample],
    ) -> EncodedGallery:
        """Encodes the images of a batch and all their texts, and keeps what :meth:`score` needs.

        Args:
            model: in evaluation mode.
            inputs: of the data preprocessor.
            data_samples: one per image.
        """

    @abstractmethod
    def score(
        self, model: nn.Module, encoded: EncodedGallery, folds: Collection[int] = (1,)
    ) -> Gallery:
        """The scores of all pairs, on the CPU; the same on every rank.

        Args:
            model: in evaluation mode.
            encoded: the whole test set.
            folds: the numbers of folds of the metrics (``RetrievalMetric.folds``).
        """

    def saved_scores(self, model: nn.Module, scores: Tensor) -> Tensor:
        """What ``save_scores`` writes and an ensemble averages, (I, T) float64.

        Args:
            model: in evaluation mode.
            scores: of the gallery, of one direction or of both, (I, T).
        """
        return scores.double()

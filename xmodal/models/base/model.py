"""The base class of all models."""

from mmengine.model import BaseModel

from xmodal.structures import DataSample, ImageTextBatch


class CrossModalModel(BaseModel):
    """A model with a method for each of MMEngine's modes.

    A subclass has some of ``loss`` (losses by name), ``predict`` (the samples with their
    predictions) and ``tensor`` (the outputs before them); each gets the batch and its data samples.

    Attributes:
        matching_head: the head that judges whether an image and a text match; None for none.
        needs_checkpoint: whether a test needs the weights of a training. False in a model that has
            all of its weights when it is built.
    """

    matching_head = None
    needs_checkpoint = True

    def require_matching_head(self) -> None:
        """Refuses what needs an ITM head, if there is none.

        Raises:
            ValueError: says what the model has in its place.
        """
        if self.matching_head is None:
            call = 'predict()' if hasattr(self, 'predict') else 'similarity()'
            raise ValueError(
                f'{type(self).__name__} has no ITM head, so there is no match(), no heat map and '
                f'no --rerank: it has {call}'
            )

    def train(self, mode: bool = True) -> 'CrossModalModel':
        """Sets the mode of all parts but those that the config freezes (``frozen=True``)."""
        super().train(mode)
        for module in self.modules():
            if getattr(module, 'is_frozen', False):
                module.eval()
        return self

    def forward(
        self,
        inputs: ImageTextBatch,
        data_samples: list[DataSample] | None = None,
        mode: str = 'tensor',
    ):
        """Calls the method that ``mode`` names.

        Raises:
            ValueError: when the model has no such method.
        """
        modes = [name for name in ('loss', 'predict', 'tensor') if hasattr(self, name)]
        if mode not in modes:
            raise ValueError(
                f"mode='{mode}', expected one of {modes} for {type(self).__name__}: a model "
                "without 'predict' only trains, or is evaluated by a loop such as RetrievalLoop"
            )
        return getattr(self, mode)(inputs, data_samples)

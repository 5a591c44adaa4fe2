"""A model with a method for each of MMEngine's modes."""

from mmengine.model import BaseModel

from xmodal.structures import DataSample, ImageTextBatch, RegionTextBatch


class CrossModalModel(BaseModel):
    """What MMEngine calls by a mode, and xmodal writes as methods.

    A subclass has some of ``loss`` (losses by name), ``predict`` (the samples with their
    predictions) and ``tensor`` (what comes before); each gets the batch and its data samples.
    """

    def forward(
        self,
        inputs: ImageTextBatch | RegionTextBatch,
        data_samples: list[DataSample] | None = None,
        mode: str = 'tensor',
    ):
        """Calls the method that ``mode`` names.

        Raises:
            ValueError: when the model has none.
        """
        modes = [name for name in ('loss', 'predict', 'tensor') if hasattr(self, name)]
        if mode not in modes:
            raise ValueError(
                f"mode='{mode}', expected one of {modes} for {type(self).__name__}: what has no "
                "'predict' only trains, or is evaluated by a loop of its own, as RetrievalLoop is"
            )
        return getattr(self, mode)(inputs, data_samples)

"""One data sample type for every task."""

from typing import NoReturn

from mmengine.structures import BaseDataElement

from xmodal.errors import ConfigError


class MissingFieldError(ConfigError, AttributeError):
    """A field that a model or a metric reads, and the pipeline does not pack."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"the samples have no '{name}': add it to the fields of the last transform of "
            'dataset.pipeline (PackImageText, or PackRegionText for regions)'
        )


class DataSample(BaseDataElement):
    """Everything about one image and its text apart from the pixels.

    Fields (set as attributes; a task sets what it has):
        image_id (int): equal for two samples of the same image.
        text (str | list[str]): one caption in training, all captions of the image in test mode.

    Meta information:
        image_path (str): the file the pixels were read from, or its part, "file:row".
            Different for different images.
        image_name (str): what people call the image; only where ``image_path`` is of many images.
        sample_index (int): the sample's index in its dataset.
        skipped (list[str]): broken images that this sample replaces, usually none.

    Raises:
        MissingFieldError: when a field is read that the sample does not have.
    """

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith('_'):  # which pickle and copy look for
            raise AttributeError(name)
        raise MissingFieldError(name)

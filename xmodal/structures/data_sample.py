"""One data sample type for every task."""

from mmengine.structures import BaseDataElement


class DataSample(BaseDataElement):
    """Everything about one image and its text apart from the pixels.

    Fields (set as attributes; a task sets what it has):
        image_id (int): equal for two samples of the same image.
        text (str | list[str]): one caption in training, all captions of the image in test mode.

    Meta information:
        image_path (str): the file the pixels were read from.
        sample_index (int): the sample's index in its dataset.
        skipped (list[str]): broken images that this sample replaces, usually none.
    """

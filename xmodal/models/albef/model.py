"""What the models of the ALBEF family share."""

from xmodal.models.albef.backbone import AlbefBackbone
from xmodal.models.base import MomentumModel, check_vocabulary
from xmodal.registry import MODELS


class AlbefModel(MomentumModel):
    """An :class:`AlbefBackbone` with heads, and a momentum teacher.

    Args:
        data_preprocessor: config of the preprocessor.
        backbone: arguments of :class:`AlbefBackbone`.

    Raises:
        ValueError: when the tokenizer has more words than the text encoder.
    """

    def __init__(self, data_preprocessor: dict, backbone: dict) -> None:
        super().__init__(data_preprocessor)
        self.backbone = MODELS.build({'type': AlbefBackbone, **backbone})
        check_vocabulary(self.data_preprocessor, self.backbone.text_encoder)

"""What the models of the ALBEF family share."""

from torch import Tensor

from xmodal.models.albef.backbone import AlbefBackbone
from xmodal.models.base import MomentumModel, check_vocabulary
from xmodal.models.fusion import copy_layers, count_layers, has_copies
from xmodal.registry import MODELS


class AlbefModel(MomentumModel):
    """An :class:`AlbefBackbone` with heads, and a momentum teacher.

    Args:
        data_preprocessor: config of the preprocessor.
        backbone: arguments of :class:`AlbefBackbone`.

    Raises:
        ValueError: when the tokenizer has more words than the text encoder, or texts may be longer
            than the position takes.
    """

    def __init__(self, data_preprocessor: dict, backbone: dict) -> None:
        super().__init__(data_preprocessor)
        self.backbone = MODELS.build({'type': AlbefBackbone, **backbone})
        check_vocabulary(self.data_preprocessor, self.backbone.text_encoder)
        self.backbone.check_length(self.data_preprocessor.max_length)
        self.register_load_state_dict_pre_hook(_fit_layers)  # before the teacher's


def _fit_layers(model: AlbefModel, state_dict: dict[str, Tensor], *_) -> None:
    """Copies fusion layers that both images shared, where the model has a copy for each.

    Raises:
        ValueError: when the weights have a copy for each, and the model does not.
    """
    fusion, found = model.backbone.fusion, count_layers(state_dict)
    if fusion.copies == 2 and found == fusion.depth:
        copy_layers(state_dict)
    elif fusion.copies == 1 and has_copies(state_dict):
        raise ValueError(
            f'it has {found} fusion layers, a copy of each for both images, and the model has '
            f'{fusion.depth}: set backbone.fusion.share_two_images=False here, too, or train what '
            'the checkpoint is of without it'
        )

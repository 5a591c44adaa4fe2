"""What models with a momentum teacher share."""

from torch import Tensor, nn

from xmodal.models.albef.backbone import AlbefBackbone
from xmodal.models.base.ema_teacher import EMATeacher
from xmodal.models.base.model import CrossModalModel
from xmodal.models.base.preprocessor import check_vocabulary


class MomentumModel(CrossModalModel):
    """A backbone, and a momentum teacher of it whose answers are soft targets.

    A subclass adds its heads and then calls :meth:`make_teacher`.

    Args:
        data_preprocessor: config of the preprocessor.
        backbone: arguments of :class:`AlbefBackbone`.

    Attributes:
        teacher: the teacher, or None.
        distillation_weight: α, the share of soft targets; a hook raises it during training.

    Raises:
        ValueError: when the tokenizer knows more words than the text encoder.
    """

    def __init__(self, data_preprocessor: dict, backbone: dict) -> None:
        super().__init__(data_preprocessor)
        self.backbone = AlbefBackbone(**backbone)
        check_vocabulary(len(self.data_preprocessor.tokenizer), self.backbone.text_encoder)
        self.teacher: EMATeacher | None = None
        self.distillation_weight = 0.0

    def momentum_modules(self) -> dict[str, str]:
        """Names in the teacher, and paths in the model, of what has a teacher."""
        return {'backbone': 'backbone'}

    def make_teacher(self, momentum: float | None) -> None:
        """Makes the teacher with decay ``momentum``; None for none."""
        if momentum is not None:
            self.teacher = EMATeacher(self._momentum_modules(), momentum)
            # Weights without a teacher (converted, or of another task) get one by copy.
            self.register_load_state_dict_pre_hook(_fill_missing_teacher)

    def init_weights(self) -> None:
        """Loads pretrained weights where the config names some, and makes the teacher equal."""
        self.backbone.init_weights()
        if self.teacher:
            self.teacher.copy_from(self._momentum_modules())

    def update_momentum(self) -> None:
        """Moves the teacher; to be called after every step of the optimizer."""
        if self.teacher:
            self.teacher.update(self._momentum_modules())

    def _momentum_modules(self) -> nn.ModuleDict:
        paths = self.momentum_modules()
        return nn.ModuleDict({name: self.get_submodule(path) for name, path in paths.items()})


def _fill_missing_teacher(
    model: MomentumModel, state_dict: dict[str, Tensor], prefix: str, *_
) -> None:
    """Fills in what ``state_dict`` lacks of the teacher, from what it has of the model or else as is.

    After it the teacher is whole and equal to the model wherever it was not loaded itself.
    """
    for name, path in model.momentum_modules().items():
        for key, value in model.get_submodule(path).state_dict().items():
            loaded = state_dict.get(f'{prefix}{path}.{key}', value)
            state_dict.setdefault(f'{prefix}teacher.module.{name}.{key}', loaded)

"""Models with a momentum teacher."""

from torch import Tensor, nn

from xmodal.models.base.ema_teacher import EMATeacher
from xmodal.models.base.model import CrossModalModel


class MomentumModel(CrossModalModel):
    """A model whose momentum teacher gives soft targets.

    A subclass builds its modules, among them ``backbone``, and then calls :meth:`make_teacher`.

    Args:
        data_preprocessor: config of the preprocessor.

    Attributes:
        teacher: the momentum teacher, or None.
        distillation_weight: α, the share of soft targets; a hook raises it during training. It is
            0 without a teacher.
    """

    def __init__(self, data_preprocessor: dict) -> None:
        super().__init__(data_preprocessor)
        self.teacher: EMATeacher | None = None
        self._distillation_weight = 0.0

    @property
    def distillation_weight(self) -> float:
        """α."""
        return self._distillation_weight if self.teacher else 0.0

    @distillation_weight.setter
    def distillation_weight(self, weight: float) -> None:
        self._distillation_weight = weight

    def momentum_modules(self) -> dict[str, str]:
        """Paths of the modules that the teacher copies, by their names in the teacher."""
        return {'backbone': 'backbone'}

    def make_teacher(self, momentum: float | None) -> None:
        """Makes the teacher with decay ``momentum``; None for no teacher.

        Raises:
            ValueError: for another decay than from 0 to 1: the teacher would leave the model.
        """
        if momentum is not None:
            if not 0 <= momentum <= 1:
                raise ValueError(
                    f'model.momentum={momentum}, expected a number from 0 to 1, such as 0.995, or '
                    'None for no teacher'
                )
            self.teacher = EMATeacher(self.online_modules(), momentum)
            # Weights without a teacher (converted, or of another task) get one by copy.
            self.register_load_state_dict_pre_hook(_fill_missing_teacher)

    def online_modules(self) -> nn.ModuleDict:
        """The modules that the teacher copies."""
        paths = self.momentum_modules()
        return nn.ModuleDict({name: self.get_submodule(path) for name, path in paths.items()})

    def teacher_of(self, module: nn.Module) -> nn.Module:
        """The teacher's copy of a module.

        Raises:
            ValueError: when there is no teacher, or it has no copy of the module.
        """
        if self.teacher is None:
            raise ValueError(
                f'{type(module).__name__} asks for its copy in the momentum teacher, and the model '
                'has none: set model.momentum, or ask only `if model.teacher`'
            )
        for name, path in self.momentum_modules().items():
            if self.get_submodule(path) is module:
                return self.teacher.module[name]
        raise ValueError(
            f'the momentum teacher has no copy of this {type(module).__name__}: a head says '
            'has_teacher = True in its class'
        )

    def init_weights(self) -> None:
        """Loads pretrained weights where the config names some, and makes the teacher equal."""
        self.backbone.init_weights()
        if self.teacher:
            self.teacher.copy_from(self.online_modules())

    def update_momentum(self) -> None:
        """Moves the teacher; to be called after every step of the optimizer."""
        if self.teacher:
            self.teacher.update(self.online_modules())


def _fill_missing_teacher(
    model: MomentumModel, state_dict: dict[str, Tensor], prefix: str, *_
) -> None:
    """Adds what ``state_dict`` lacks of the teacher: the weights that the model has or loads."""
    for name, path in model.momentum_modules().items():
        for key, value in model.get_submodule(path).state_dict().items():
            loaded = state_dict.get(f'{prefix}{path}.{key}', value)
            state_dict.setdefault(f'{prefix}teacher.module.{name}.{key}', loaded)

"""What models with a momentum teacher share."""

from torch import Tensor, nn

from xmodal.models.modes import ModeModel
from xmodal.models.momentum import MomentumTwin
from xmodal.models.network import CrossModalNetwork
from xmodal.models.preprocessor import check_vocabulary


class TaughtModel(ModeModel):
    """A network, and a momentum twin of it whose answers are soft targets.

    A subclass adds its heads and then calls :meth:`make_twin`.

    Args:
        data_preprocessor: config of the preprocessor.
        network: arguments of :class:`CrossModalNetwork`.

    Attributes:
        twin: the teacher, or None.
        distillation_weight: α, the share of soft targets; a hook raises it during training.

    Raises:
        ValueError: when the tokenizer knows more words than the text encoder.
    """

    def __init__(self, data_preprocessor: dict, network: dict) -> None:
        super().__init__(data_preprocessor)
        self.network = CrossModalNetwork(**network)
        check_vocabulary(len(self.data_preprocessor.tokenizer), self.network.text_encoder)
        self.twin: MomentumTwin | None = None
        self.distillation_weight = 0.0

    def taught(self) -> dict[str, str]:
        """Names in the twin, and paths in the model, of what has a twin."""
        return {'network': 'network'}

    def make_twin(self, momentum: float | None) -> None:
        """Makes the teacher with decay ``momentum``; None for none."""
        if momentum is not None:
            self.twin = MomentumTwin(self._taught_modules(), momentum)
            # Weights without a twin (converted, or of another task) get one by copy.
            self.register_load_state_dict_pre_hook(_make_missing_twin)

    def init_weights(self) -> None:
        """Loads pretrained weights where the config names some, and makes the twin equal."""
        self.network.init_weights()
        if self.twin:
            self.twin.copy_from(self._taught_modules())

    def update_momentum(self) -> None:
        """Moves the twin; to be called after every step of the optimizer."""
        if self.twin:
            self.twin.update(self._taught_modules())

    def _taught_modules(self) -> nn.ModuleDict:
        paths = self.taught()
        return nn.ModuleDict({name: self.get_submodule(path) for name, path in paths.items()})


def _make_missing_twin(model: TaughtModel, state_dict: dict[str, Tensor], prefix: str, *_) -> None:
    """Fills in what ``state_dict`` lacks of the twin, from what it has of the model or else as is.

    After it the twin is whole and equal to the model wherever it was not loaded itself.
    """
    for name, path in model.taught().items():
        for key, value in model.get_submodule(path).state_dict().items():
            loaded = state_dict.get(f'{prefix}{path}.{key}', value)
            state_dict.setdefault(f'{prefix}twin.module.{name}.{key}', loaded)

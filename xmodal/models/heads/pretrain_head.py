"""The protocol of a pre-training objective, built in or a user's."""

from torch import Tensor, nn

from xmodal.models.fusion import FusionRequest
from xmodal.structures import Fused, LxmertStep, PretrainStep, Shown


class PretrainHead(nn.Module):
    """An objective: its losses of one step, with the whole model to use.

    It owns its masking and its distillation. A head that reads fused words alone requests them, so
    that the fusion encoder runs once for all such heads, and has :meth:`fused_loss`; any other has
    :meth:`loss`, and fuses itself what it needs. A constructor that has a parameter ``embed_dims``,
    ``vocab_size``, ``patch_size`` or ``feature_dims`` gets it from the model.

    Attributes:
        order: heads are built and called in this order, and then by name.
        has_teacher: whether the momentum teacher has a copy of the head (ALBEF family).
        reads_tokens: whether it reads tokens, and not the embeddings alone (ALBEF family).
        reads_image_tokens: whether it reads the fused image tokens (LXMERT).
        min_batch: pairs that a process's batch needs at least, where the others are negatives.
        min_keys: the same of the batches of all processes together with the queue.
    """

    order = 10
    min_batch = min_keys = 1
    has_teacher = False
    reads_tokens = True
    reads_image_tokens = True

    def init_weights(self) -> None:
        """Loads pretrained weights where the config names some; called when training starts."""

    def check(self, model: nn.Module) -> None:
        """Raises ValueError where the model, whole by now, lacks what the objective needs."""

    def loss(self, model: nn.Module, step: PretrainStep | LxmertStep) -> dict[str, Tensor]:
        """Values by name: those with 'loss' in the name are added up, the others are logged."""
        raise NotImplementedError

    def request_fusion(self, model: nn.Module, step: PretrainStep) -> FusionRequest | None:
        """What is to be fused for :meth:`fused_loss`; None for :meth:`loss` (ALBEF family)."""
        return None

    def fused_loss(
        self, model: nn.Module, step: PretrainStep, request: FusionRequest, fused: Fused
    ) -> dict[str, Tensor]:
        """As :meth:`loss`, with what was requested."""
        raise NotImplementedError

    def replace_texts(self, model: nn.Module, shown: Shown) -> Shown:
        """What LXMERT is shown with some texts replaced, before anything is masked."""
        return shown

    def mask(self, model: nn.Module, shown: Shown) -> Shown:
        """What LXMERT is shown with words or regions masked."""
        return shown

"""The interface of an encoder of one modality."""

from abc import ABC, abstractmethod

from torch import nn

from xmodal.structures import Tokens


class Encoder(nn.Module, ABC):
    """Encodes one modality in two steps, so that a neck may act between them.

    A subclass has ``embed_dims``, the width D of its tokens.

    Attributes:
        has_cls: whether its first token is [CLS].
    """

    has_cls = True

    @abstractmethod
    def embed(self, *inputs) -> Tokens:
        """Inputs to the tokens that enter the first block, (B, L, D)."""

    @abstractmethod
    def encode(self, tokens: Tokens) -> Tokens:
        """The result of :meth:`embed` through all blocks, (B, L, D)."""

    def forward(self, *inputs) -> Tokens:
        """Both steps."""
        return self.encode(self.embed(*inputs))

    def init_weights(self) -> None:
        """Loads pretrained weights where the config names some; called when training starts."""

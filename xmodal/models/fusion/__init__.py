"""The fusion encoder and its attention."""

from xmodal.models.fusion.encoder import FusionEncoder

__all__ = ['FusionEncoder']

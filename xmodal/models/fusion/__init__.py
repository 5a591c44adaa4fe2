"""The fusion encoders."""

from xmodal.models.fusion.cross_modality import CrossModalityEncoder
from xmodal.models.fusion.encoder import FusionEncoder

__all__ = ['CrossModalityEncoder', 'FusionEncoder']

"""The fusion encoders."""

from xmodal.models.fusion.cross_modality import CrossModalityEncoder
from xmodal.models.fusion.encoder import FusionEncoder
from xmodal.models.fusion.requests import FusionRequest, fuse_requests

__all__ = ['CrossModalityEncoder', 'FusionEncoder', 'FusionRequest', 'fuse_requests']

"""The fusion encoders."""

from xmodal.models.fusion.cross_modality import CrossModalityEncoder
from xmodal.models.fusion.encoder import FusionEncoder
from xmodal.models.fusion.requests import FusionRequest, fuse_requests
from xmodal.models.fusion.two_images import copy_layers, count_layers, has_copies

__all__ = [
    'CrossModalityEncoder',
    'FusionEncoder',
    'FusionRequest',
    'copy_layers',
    'count_layers',
    'fuse_requests',
    'has_copies',
]

"""EMKUM: token types with LayerScale before one block that both modalities share."""

from xmodal.models.emkum.model import EmkumModel
from xmodal.models.emkum.shared_block import SharedBlock

__all__ = ['EmkumModel', 'SharedBlock']

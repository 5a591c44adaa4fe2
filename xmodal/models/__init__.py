"""Models, and the parts they are assembled from."""

from xmodal.models import backbones, fusion, heads, necks
from xmodal.models.network import CrossModalNetwork
from xmodal.models.preprocessor import ImageTextPreprocessor
from xmodal.models.pretrainer import CrossModalPretrainer

__all__ = [
    'CrossModalNetwork',
    'CrossModalPretrainer',
    'ImageTextPreprocessor',
    'backbones',
    'fusion',
    'heads',
    'necks',
]

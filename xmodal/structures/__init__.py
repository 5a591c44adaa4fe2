"""The typed objects that travel between the stages of a model."""

from xmodal.structures.batch import Identities, ImageTextBatch
from xmodal.structures.data_sample import DataSample, MissingFieldError
from xmodal.structures.encoded import CrossAttentions, Encoded, Fused, require_unit_length
from xmodal.structures.keys import EMPTY, Keys
from xmodal.structures.relation import CrossTerms, LowRank, Relation
from xmodal.structures.step import LxmertStep, PretrainStep, Shown
from xmodal.structures.texts import PackedTexts
from xmodal.structures.tokens import ObjectLabels, Regions, Tokens, select_rows, select_tokens

__all__ = [
    'EMPTY',
    'CrossAttentions',
    'CrossTerms',
    'DataSample',
    'Encoded',
    'Fused',
    'Identities',
    'ImageTextBatch',
    'Keys',
    'LowRank',
    'LxmertStep',
    'MissingFieldError',
    'ObjectLabels',
    'PackedTexts',
    'PretrainStep',
    'Regions',
    'Relation',
    'Shown',
    'Tokens',
    'require_unit_length',
    'select_rows',
    'select_tokens',
]

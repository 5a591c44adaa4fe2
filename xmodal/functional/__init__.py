"""The equations of the papers as pure tensor functions, one function per equation.

ACE-RPE: "An Anchor-based Relative Position Embedding Method for Cross-Modal Tasks" (Wang et al.).
T-EMDE: "Sketching-based global similarity for cross-modal retrieval" (Rychalska et al.).

Symbols: B batch, M patches, N words, D width, G groups, H heads. In ACE-RPE index 0 of every token
axis is [CLS], so that an image has 1 + M tokens and a text 1 + N. In T-EMDE L is the number of
tokens of a set, N of partitions, K of centroids in each, and D the width of their space. Everything
is computed in float32 (float64 for float64 inputs), also under autocast: distances reach 1 / 0.
"""

from xmodal.functional.anchor_loss import anchor_log_sum_exp, margin_contrast
from xmodal.functional.anchors import (
    anchor_distance,
    anchor_mask,
    check_groups,
    multi_group_similarity,
    soft_shrink,
)
from xmodal.functional.exporting import is_exporting
from xmodal.functional.late_interaction import late_interaction
from xmodal.functional.norms import inverse_norm, l2_normalize
from xmodal.functional.paths import relative_box_distance, relative_distance
from xmodal.functional.seen_words import seen_words
from xmodal.functional.sharing import shared_product
from xmodal.functional.sketches import centroid_distance, sketch, soft_assignment
from xmodal.functional.terms import (
    bias_term,
    contextual_means,
    fill_unreachable,
    value_term,
)

__all__ = [
    'anchor_distance',
    'anchor_log_sum_exp',
    'anchor_mask',
    'bias_term',
    'centroid_distance',
    'check_groups',
    'contextual_means',
    'fill_unreachable',
    'inverse_norm',
    'is_exporting',
    'l2_normalize',
    'late_interaction',
    'margin_contrast',
    'multi_group_similarity',
    'relative_box_distance',
    'relative_distance',
    'seen_words',
    'shared_product',
    'sketch',
    'soft_assignment',
    'soft_shrink',
    'value_term',
]

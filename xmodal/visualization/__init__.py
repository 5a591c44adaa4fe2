"""Figures of a trained model: Grad-CAM heat maps, anchors, sketches and the HTML report."""

import lazy_loader

from xmodal.visualization.anchors import WordAnchors
from xmodal.visualization.grad_cam import grad_cam

# Imported when it is used: it needs matplotlib, and a grounding needs heat maps alone.
__getattr__, *_ = lazy_loader.attach(__name__, submod_attrs={'anchor_panels': ['draw_anchors']})

__all__ = ['WordAnchors', 'draw_anchors', 'grad_cam']

"""Figures of a trained model: Grad-CAM heat maps, anchors, sketches and the HTML report."""

from xmodal.visualization.anchors import WordAnchors, anchor_maps, draw_anchors
from xmodal.visualization.grad_cam import grad_cam

__all__ = ['WordAnchors', 'anchor_maps', 'draw_anchors', 'grad_cam']

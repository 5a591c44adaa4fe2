"""Figures of a trained model: Grad-CAM heat maps, anchors, sketches and the HTML report."""

from xmodal.visualization.anchors import anchor_maps
from xmodal.visualization.grad_cam import grad_cam

__all__ = ['anchor_maps', 'grad_cam']

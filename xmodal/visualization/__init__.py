"""Looking instead of reading: heat maps, anchors, and the report of a run."""

from xmodal.visualization.anchors import anchor_maps
from xmodal.visualization.grad_cam import grad_cam

__all__ = ['anchor_maps', 'grad_cam']

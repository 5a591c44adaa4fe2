"""Trained models in a script or a notebook."""

from xmodal.apis.inference import Inferencer, load_model
from xmodal.search import ImageIndex

__all__ = ['ImageIndex', 'Inferencer', 'load_model']

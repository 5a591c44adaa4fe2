"""Trained models in a script or a notebook."""

from xmodal.apis.inference import Inferencer, load_model

__all__ = ['Inferencer', 'load_model']

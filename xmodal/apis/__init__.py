"""Trained models in a notebook or a script."""

from xmodal.apis.inference import Inferencer, load_model

__all__ = ['Inferencer', 'load_model']

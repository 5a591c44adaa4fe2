"""Trained models in a script or a notebook."""

from xmodal.apis.inference import Inferencer
from xmodal.apis.models import checkpoint_of, get_model, load_model
from xmodal.search import ImageIndex
from xmodal.zoo.metafile import list_models
from xmodal.zoo.saving import push_to_hub, save_pretrained

__all__ = [
    'ImageIndex',
    'Inferencer',
    'checkpoint_of',
    'get_model',
    'list_models',
    'load_model',
    'push_to_hub',
    'save_pretrained',
]

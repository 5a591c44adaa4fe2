"""Models by name: what the metafiles say of them, their weights, and folders that hold a model.

Nothing here imports PyTorch before weights are read.
"""

from xmodal.zoo.metafile import CONFIGS, ModelEntry, find_entry, list_models, no_model

__all__ = ['ModelEntry', 'CONFIGS', 'find_entry', 'list_models', 'no_model']

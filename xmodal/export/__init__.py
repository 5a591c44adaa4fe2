"""Trained models for other runtimes: the parts of a model as programs of tensors, and ONNX."""

from xmodal.export.towers import ImageTower, Matcher, Part, TextTower, parts_of

__all__ = ['ImageTower', 'Matcher', 'Part', 'TextTower', 'parts_of']

"""xmodal: a toolbox for cross-modal (image-text) learning."""

from xmodal.version import __version__

__all__ = ['__version__']

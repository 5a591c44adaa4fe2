"""Runner, loops, hooks and optimizers."""

import lazy_loader

# Imported when they are used: all tools explain errors, and a converter needs no PyTorch for that.
__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__, submodules=['hooks', 'loops', 'optim'], submod_attrs={'runner': ['XModalRunner']}
)

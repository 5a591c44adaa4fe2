"""LXMERT's public code (github.com/airsplay/lxmert) as it is, under the libraries of today.

Its imports of clients for a download, and a name that torch has dropped, get stand-ins. Nothing of
its arithmetic is changed.
"""

import sys
import warnings
from importlib import import_module
from pathlib import Path
from types import ModuleType

import torch
from torch import Tensor, nn

from xmodal.errors import ConfigError


def load(folder: Path, sizes: dict[str, int], depths: dict[str, int], answers: int) -> nn.Module:
    """Builds the model of its pre-training with random weights.

    Args:
        folder: a checkout of the public code.
        sizes: arguments of its BertConfig.
        depths: ``l_layers``, ``x_layers`` and ``r_layers``.
        answers: size of the answer table.

    Raises:
        ConfigError: if the folder has no such code.
    """
    if not (folder / 'src' / 'lxrt' / 'modeling.py').is_file():
        raise ConfigError(f'--peer {folder} has no src/lxrt/modeling.py: expected airsplay/lxmert')
    for name in ('boto3', 'botocore', 'botocore.exceptions', 'requests'):
        sys.modules.setdefault(name, ModuleType(name))
    sys.modules['botocore.exceptions'].ClientError = OSError
    sys.modules['torch.optim.optimizer'].required = None
    warnings.filterwarnings('ignore', 'This overload of add', UserWarning)
    sys.path.insert(0, str(folder / 'src'))
    modeling = import_module('lxrt.modeling')

    for name, depth in depths.items():
        setattr(modeling.VISUAL_CONFIG, name, depth)
    config = modeling.BertConfig(sizes.pop('vocab_size'), **sizes)
    losses = ','.join(modeling.VISUAL_CONFIG.VISUAL_LOSSES)
    return modeling.LXRTPretraining(config, visual_losses=losses, num_answers=answers)


def make_optimizer(model: nn.Module) -> torch.optim.Optimizer:
    """Its own optimizer, by the code that ``load`` has found."""
    optimization = import_module('lxrt.optimization')

    return optimization.BertAdam(model.parameters(), lr=1e-4)


def loss(model: nn.Module, inputs: dict[str, Tensor | tuple]) -> Tensor:
    """The sum of its losses.

    Args:
        model: of ``load``.
        inputs: those of transformers' LxmertForPreTraining, which has other names for some.
    """
    renamed = {'labels': 'masked_lm_labels', 'visual_pos': 'pos'}
    return model(**{renamed.get(name, name): value for name, value in inputs.items()})[0]

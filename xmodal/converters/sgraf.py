"""The released weights of SAF and SGR (SGRAF) as those of this package."""

import argparse
import re
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from xmodal.checkpoint_file import read_checkpoint
from xmodal.converters.converted import Converted
from xmodal.engine.checkpoint import listed
from xmodal.files import FileError, explain_errors, reads

# Names of SGRAF, in the three parts of a checkpoint, and our names.
_NAMES = (
    {r'fc\.': 'image_encoder.projection.'},
    {r'embed\.': 'text_encoder.embedding.', r'cap_rnn\.': 'text_encoder.gru.'},
    {
        r'v_global_w\.': 'similarity.global_pooling.image.',
        r't_global_w\.': 'similarity.global_pooling.text.',
        r'sim_tranglo_w\.': 'similarity.global_pooling.linear.',
        r'sim_tranloc_w\.': 'similarity.local.linear.',
        r'sim_eval_w\.': 'similarity.output.',
        r'SGR_module\.(\d+)\.graph_query_w\.': r'similarity.reasoning.steps.\1.query.',
        r'SGR_module\.(\d+)\.graph_key_w\.': r'similarity.reasoning.steps.\1.key.',
        r'SGR_module\.(\d+)\.sim_graph_w\.': r'similarity.reasoning.steps.\1.linear.',
        r'SAF_module\.attn_sim_w\.': 'similarity.reasoning.relevance.',
        r'SAF_module\.bn\.': 'similarity.reasoning.bn.',
    },
)
LAYOUT = "three state dicts of SGRAF under 'model'"
_ATTENTION = {
    'embedding_local.0.': 'local.',
    'embedding_local.1.': 'local_norm.',
    'embedding_global.0.': 'mean.',
    'embedding_global.1.': 'mean_norm.',
    'embedding_common.0.': 'gate.',
}


@reads(LAYOUT)
def read_parts(path: Path) -> list[dict[str, Tensor]]:
    """Reads the state dicts of image encoder, text encoder and similarity.

    A file also contains its command line and its best score, which are ignored.

    Raises:
        ValueError: if the file does not contain these three state dicts.
    """
    scalar = np.float64().__reduce__()[0]
    allowed = [argparse.Namespace, np.dtype, type(np.dtype('float64')), scalar]
    allowed.append((scalar, 'numpy.core.multiarray.scalar'))  # its module in older files
    with torch.serialization.safe_globals(allowed):
        content = read_checkpoint(path)
    parts = content.get('model')
    if not isinstance(parts, list) or len(parts) != len(_NAMES):
        raise FileError(
            f"{path} has no list of three state dicts under 'model': is this a file of SGRAF?"
        )
    return parts


def rename(part: int, name: str) -> str | None:
    """Returns our name of a weight; None for the bias of the keys of a graph, which has no effect.

    Args:
        part: 0 image encoder, 1 text encoder, 2 similarity.
        name: name of SGRAF.

    Raises:
        ValueError: if SGRAF has no such name.
    """
    name = name.removeprefix('module.')
    if re.match(r'SGR_module\.\d+\.graph_key_w\.bias', name):
        return None
    for theirs, ours in _NAMES[part].items():
        match = re.match(theirs, name)
        if not match:
            continue
        rest = name[match.end() :]
        for original, renamed in _ATTENTION.items():
            if rest.startswith(original):
                rest = renamed + rest.removeprefix(original)
        return match.expand(ours) + rest
    raise ValueError(f"'{name}' is not a weight of SGRAF: is this a file of another model?")


def convert(parts: list[dict[str, Tensor]], target: dict[str, Tensor]) -> dict[str, Tensor]:
    """Renames the weights.

    Args:
        parts: the three state dicts of the file.
        target: state dict of the model of the config, with its vocabulary.

    Raises:
        ValueError: if the weights do not fit the model.
    """
    renamed = {
        ours: value
        for part, weights in enumerate(parts)
        for name, value in weights.items()
        if (ours := rename(part, name)) is not None
    }
    # The fingerprint of the vocabulary.
    renamed |= {name: x for name, x in target.items() if name.startswith('data_preprocessor.')}
    for side, names in (
        ('the file', renamed.keys() - target.keys()),
        ('the model', target.keys() - renamed.keys()),
    ):
        if names:
            raise ValueError(
                f'only {side} has {listed(sorted(names))}: the config has another model than '
                'that of the weights (SAF or SGR, with self-attention)'
            )
    for name, value in renamed.items():
        if value.shape != target[name].shape:
            raise ValueError(
                f'{name} has the shape {tuple(value.shape)} in the file and '
                f'{tuple(target[name].shape)} in the model: the config has another size, or '
                'another vocabulary than that of the weights'
            )
    return renamed


def convert_file(path: Path, model: nn.Module) -> Converted:
    """Converts a file of SGRAF for a model.

    Raises:
        FileError: if the file does not fit the model.
    """
    parts = read_parts(path)
    with explain_errors(path, LAYOUT):
        return Converted(convert(parts, model.state_dict()))

"""Converts released weights of SAF and SGR (SGRAF) to a checkpoint of this package.

    python tools/model_converters/sgraf.py model_best.pth.tar saf_f30k.pth \\
        --config configs/temde/saf_self_attention_f30k.py

Then run `tools/test.py CONFIG saf_f30k.pth`. The ids of words are those of the vocabulary file that
was released with the weights. The config must name this file
(`data_preprocessor.tokenizer.vocabulary`); a newly built vocabulary has another order.
"""

import argparse
import re
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from xmodal.checkpoint_file import read_checkpoint, write_checkpoint
from xmodal.engine.checkpoint import listed
from xmodal.engine.errors import run_or_explain
from xmodal.engine.launch import read_config
from xmodal.files import FileError, explain_errors, reads, require_new
from xmodal.registry import MODELS, register_all

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


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('source', type=Path, help='file of SGRAF')
    parser.add_argument('out', type=Path, help='file to write; must not exist')
    parser.add_argument(
        '--config', required=True, help='config of the model that the weights are for'
    )
    return parser.parse_args()


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


def main() -> None:
    """Converts a file."""
    args = parse_args()
    require_new('out', args.out)
    register_all()
    parts = read_parts(args.source)
    target = MODELS.build(read_config(args.config, 'model').model).state_dict()
    with explain_errors(args.source, LAYOUT):
        converted = convert(parts, target)
    write_checkpoint(args.out, {'state_dict': converted, 'meta': {'source': args.source.name}})
    print(f'{args.out}: {len(converted)} tensors')


if __name__ == '__main__':
    run_or_explain(main)

"""Converts the released weights of ALBEF to a checkpoint of this package.

    python tools/model_converters/albef.py ALBEF_4M.pth albef_4m.pth \\
        --config configs/acerpe/albef_4m.py
    python tools/model_converters/albef.py ALBEF_4M.pth acerpe_init.pth \\
        --config configs/acerpe/pretrain_4m.py --image-blocks 0 1 2 3 4 5

Then set `load_from = 'albef_4m.pth'` in a config, or run `tools/test.py CONFIG albef_4m.pth`. The
weights can be under the key 'model' or at the top level (as in the fine-tuned files). If the file
has no momentum teacher, it is copied from the model when the checkpoint is loaded.
"""

import argparse
import re
from pathlib import Path

from torch import Tensor

from xmodal.engine.checkpoint import read_checkpoint, write_checkpoint
from xmodal.engine.errors import run_or_explain
from xmodal.engine.launch import read_config
from xmodal.files import require_new
from xmodal.registry import MODELS, register_all

FIRST_FUSION_LAYER = 6  # of the twelve layers of BERT

# Names of ALBEF, without the "_m" of momentum modules, and our names.
_LAYER = {
    'attention.self.query': 'self_attention.q_proj',
    'attention.self.key': 'self_attention.k_proj',
    'attention.self.value': 'self_attention.v_proj',
    'attention.output.dense': 'self_attention.out_proj',
    'attention.output.LayerNorm': 'self_norm',
    'crossattention.self.query': 'cross_attention.q_proj',
    'crossattention.self.key': 'cross_attention.k_proj',
    'crossattention.self.value': 'cross_attention.v_proj',
    'crossattention.output.dense': 'cross_attention.out_proj',
    'crossattention.output.LayerNorm': 'cross_norm',
    'intermediate.dense': 'feed_forward.fc1',
    'output.dense': 'feed_forward.fc2',
    'output.LayerNorm': 'feed_forward.norm',
}
_PREFIX = {
    'visual_encoder.': 'backbone.image_encoder.vit.',
    'text_encoder.embeddings.': 'backbone.text_encoder.bert.embeddings.',
    'text_encoder.encoder.layer.': 'backbone.text_encoder.bert.encoder.layer.',
    'text_encoder.cls.predictions.transform.dense.': 'heads.mlm.transform.',
    'text_encoder.cls.predictions.transform.LayerNorm.': 'heads.mlm.norm.',
    'text_encoder.cls.predictions.bias': 'heads.mlm.bias',
    'vision_proj.': 'backbone.image_proj.',
    'text_proj.': 'backbone.text_proj.',
    'itm_head.': 'heads.itm.classifier.',
}


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('source', type=Path, help='file of ALBEF')
    parser.add_argument('out', type=Path, help='file to write; must not exist')
    parser.add_argument(
        '--config', required=True, help='config of the model that the weights are for'
    )
    parser.add_argument(
        '--image-blocks',
        type=int,
        nargs='+',
        help='indices of the image encoder blocks to take, in order (default: the first ones)',
    )
    return parser.parse_args()


def read_weights(path: Path) -> dict[str, Tensor]:
    """Reads the tensors of a file, without the prefixes of wrappers and of BERT."""
    content = read_checkpoint(path)
    content = content.get('model', content)
    return {
        name.removeprefix('module.').replace('.bert.', '.'): value
        for name, value in content.items()
        if isinstance(value, Tensor)
    }


def rename(name: str, image_blocks: list[int] | None = None) -> str | None:
    """Returns our name of a weight of ALBEF; None if our model has no such weight."""
    momentum = re.match(r'(visual_encoder|text_encoder|vision_proj|text_proj)_m\.', name)
    if momentum:
        online = rename(name.replace('_m.', '.', 1), image_blocks)
        if online is None:
            return None
        online = online.removeprefix('heads.') if online.startswith('heads.mlm.') else online
        return f'teacher.module.{online}'
    if match := re.match(r'visual_encoder\.blocks\.(\d+)\.(.+)', name):
        block = int(match[1])
        if image_blocks is not None and block not in image_blocks:
            return None
        index = block if image_blocks is None else image_blocks.index(block)
        return f'backbone.image_encoder.vit.blocks.{index}.{match[2]}'
    if match := re.match(r'text_encoder\.encoder\.layer\.(\d+)\.(.+)\.(\w+)', name):
        layer = int(match[1]) - FIRST_FUSION_LAYER
        if layer >= 0:
            module = _LAYER.get(match[2])
            return module and f'backbone.fusion.layers.{layer}.{module}.{match[3]}'
    for theirs, ours in _PREFIX.items():
        if name.startswith(theirs):
            return ours + name.removeprefix(theirs)
    return None


def convert(
    weights: dict[str, Tensor], image_blocks: list[int] | None = None
) -> tuple[dict[str, Tensor], list[str]]:
    """Renames the weights of ALBEF; also returns the names that our model does not have."""
    renamed, unused = {}, []
    for name, value in weights.items():
        if name == 'temp':
            renamed['heads.itc.temperature.log'] = value.log()
        elif (ours := rename(name, image_blocks)) is not None:
            renamed[ours] = value
        else:
            unused.append(name)
    return renamed, unused


def fit(
    renamed: dict[str, Tensor], target: dict[str, Tensor]
) -> tuple[dict[str, Tensor], list[str], list[str]]:
    """Selects the weights that a model has.

    Returns:
        The weights, the names that the model does not have, and the names that the file lacks.

    Raises:
        ValueError: if no weight fits, or a weight has another shape.
    """
    fitting = {name: value for name, value in renamed.items() if name in target}
    for name, value in fitting.items():
        # Position embeddings are resampled when the checkpoint is loaded.
        if value.shape != target[name].shape and not name.endswith('vit.pos_embed'):
            raise ValueError(
                f'{name} has the shape {tuple(value.shape)} in the file and '
                f'{tuple(target[name].shape)} in the model: use a config with the size of the file'
            )
    if not fitting:
        raise ValueError('none of the weights belongs to the model: is this a file of ALBEF?')
    extra = sorted(renamed.keys() - target.keys())
    missing = sorted(
        name for name in target.keys() - fitting.keys() if not _is_copied(name, fitting)
    )
    return fitting, extra, missing


def _is_copied(name: str, fitting: dict[str, Tensor]) -> bool:
    """Returns whether a missing weight is copied on loading: that of a teacher not in the file."""
    return name.startswith('teacher.') and not any(key.startswith('teacher.') for key in fitting)


def main() -> None:
    """Converts a file and reports."""
    args = parse_args()
    require_new('out', args.out)
    register_all()
    target = MODELS.build(read_config(args.config).model).state_dict()
    renamed, unused = convert(read_weights(args.source), args.image_blocks)
    fitting, extra, missing = fit(renamed, target)
    write_checkpoint(args.out, {'state_dict': fitting, 'meta': {'source': args.source.name}})
    print(f'{args.out}: {len(fitting)} tensors')
    for title, names in (
        ('not used, no such name in the model', unused + extra),
        ('missing in the file, initial values are kept', missing),
    ):
        print(f'{title}: {len(names)}', *names, sep='\n  ')


if __name__ == '__main__':
    run_or_explain(main)

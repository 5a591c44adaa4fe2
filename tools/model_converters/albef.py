"""ALBEF's released weights to a checkpoint of this package.

    python tools/model_converters/albef.py ALBEF_4M.pth albef_4m.pth \\
        --config configs/acerpe/albef_4m.py
    python tools/model_converters/albef.py ALBEF_4M.pth acerpe_init.pth \\
        --config configs/acerpe/pretrain_4m.py --image-blocks 0 1 2 3 4 5

Then `load_from = 'albef_4m.pth'` in a config, or `tools/test.py CONFIG albef_4m.pth`. Files with
everything under 'model' and flat ones (the fine-tuned weights) are read alike. A momentum teacher
that the file lacks is made by copy when the checkpoint is loaded.
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

FIRST_FUSION_LAYER = 6  # of BERT's twelve

# ALBEF's names, without the teachers' "_m", and ours.
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
    parser.add_argument('source', type=Path, help="ALBEF's file")
    parser.add_argument('out', type=Path, help='file to write; must not exist')
    parser.add_argument('--config', required=True, help='whose model the weights are for')
    parser.add_argument(
        '--image-blocks',
        type=int,
        nargs='+',
        help='blocks of the image encoder to take, in order (default: the first ones)',
    )
    return parser.parse_args()


def read_weights(path: Path) -> dict[str, Tensor]:
    """The tensors of a wrapped or flat file, without what wrappers and BERT put before names."""
    content = read_checkpoint(path)
    content = content.get('model', content)
    return {
        name.removeprefix('module.').replace('.bert.', '.'): value
        for name, value in content.items()
        if isinstance(value, Tensor)
    }


def rename(name: str, image_blocks: list[int] | None = None) -> str | None:
    """Our name of one of ALBEF's weights; None for one that has no place here."""
    teacher = re.match(r'(visual_encoder|text_encoder|vision_proj|text_proj)_m\.', name)
    if teacher:
        online = rename(name.replace('_m.', '.', 1), image_blocks)
        if online is None:
            return None
        online = online.removeprefix('heads.') if online.startswith('heads.mlm.') else online
        return f'teacher.module.{online}'
    if found := re.match(r'visual_encoder\.blocks\.(\d+)\.(.+)', name):
        block = int(found[1])
        if image_blocks is not None and block not in image_blocks:
            return None
        place = block if image_blocks is None else image_blocks.index(block)
        return f'backbone.image_encoder.vit.blocks.{place}.{found[2]}'
    if found := re.match(r'text_encoder\.encoder\.layer\.(\d+)\.(.+)\.(\w+)', name):
        layer = int(found[1]) - FIRST_FUSION_LAYER
        if layer >= 0:
            return _rename_fusion(layer, found[2], found[3])
    for theirs, ours in _PREFIX.items():
        if name.startswith(theirs):
            return ours + name.removeprefix(theirs)
    return None


def _rename_fusion(layer: int, module: str, parameter: str) -> str | None:
    ours = _LAYER.get(module)
    return None if ours is None else f'backbone.fusion.layers.{layer}.{ours}.{parameter}'


def convert(
    weights: dict[str, Tensor], image_blocks: list[int] | None = None
) -> tuple[dict[str, Tensor], list[str]]:
    """ALBEF's weights under our names, and the names that have no place."""
    renamed, left = {}, []
    for name, value in weights.items():
        if name == 'temp':
            renamed['heads.itc.temperature.log'] = value.log()
        elif (ours := rename(name, image_blocks)) is not None:
            renamed[ours] = value
        else:
            left.append(name)
    return renamed, left


def fit(
    renamed: dict[str, Tensor], target: dict[str, Tensor]
) -> tuple[dict[str, Tensor], list[str], list[str]]:
    """What a model has a place for: weights, names without a place, and names left missing.

    Raises:
        ValueError: when nothing fits, or a weight has another shape.
    """
    fitting = {name: value for name, value in renamed.items() if name in target}
    for name, value in fitting.items():
        # Another number of patches is resampled when the checkpoint is loaded.
        if value.shape != target[name].shape and not name.endswith('vit.pos_embed'):
            raise ValueError(
                f'{name} is {tuple(value.shape)} in the file and {tuple(target[name].shape)} in '
                'the model: the config is not of the size of these weights'
            )
    if not fitting:
        raise ValueError('none of the weights belongs to the model: is this a file of ALBEF?')
    extra = sorted(renamed.keys() - target.keys())
    missing = sorted(name for name in target.keys() - fitting.keys() if not _is_made(name, fitting))
    return fitting, extra, missing


def _is_made(name: str, fitting: dict[str, Tensor]) -> bool:
    """Whether a missing weight is made when loading: a teacher without any weight in the file."""
    return name.startswith('teacher.') and not any(key.startswith('teacher.') for key in fitting)


def main() -> None:
    """Converts a file and reports."""
    args = parse_args()
    require_new('out', args.out)
    register_all()
    target = MODELS.build(read_config(args.config).model).state_dict()
    renamed, left = convert(read_weights(args.source), args.image_blocks)
    fitting, extra, missing = fit(renamed, target)
    write_checkpoint(args.out, {'state_dict': fitting, 'meta': {'source': args.source.name}})
    print(f'{args.out}: {len(fitting)} tensors')
    for title, names in (
        ('left, for lack of a place', left + extra),
        ('missing, at their initial values', missing),
    ):
        print(f'{title}: {len(names)}', *names, sep='\n  ')


if __name__ == '__main__':
    run_or_explain(main)

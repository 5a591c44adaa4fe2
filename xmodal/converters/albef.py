"""The weights that ALBEF's authors released, as those of this package: renamed."""

import re
from pathlib import Path

from torch import Tensor, nn

from xmodal.checkpoint_file import read_checkpoint, select_tensors
from xmodal.converters.converted import Converted
from xmodal.files import explain_errors, reads
from xmodal.models import AlbefClassifier, AlbefVQA
from xmodal.models.albef.decoder_weights import fill_missing_decoder
from xmodal.models.fusion import FusionEncoder, copy_layers, count_layers
from xmodal.models.fusion.pretrained import BERT_NAMES

LAYOUT = "weights of ALBEF, under 'model' or at the top level"
FIRST_FUSION_LAYER = 6  # of the twelve layers of BERT

# What only the files of a task have, the first that fits.
_TASKS = {
    'text_decoder.': 'VQA',
    'ta_head.': 'text assignment, which prepares NLVR2',
    'text_encoder.encoder.layer.17.': 'NLVR2',
    'cls_head.': 'SNLI-VE',
    'idx_queue': 'retrieval or RefCOCO+',
}
# Names of ALBEF, without the "_m" of momentum modules, and our names.
_PREFIX = {
    'visual_encoder.': 'backbone.image_encoder.vit.',
    'text_encoder.embeddings.': 'backbone.text_encoder.bert.embeddings.',
    'text_encoder.encoder.layer.': 'backbone.text_encoder.bert.encoder.layer.',
    'text_encoder.cls.predictions.transform.dense.': 'heads.mlm.transform.',
    'text_encoder.cls.predictions.transform.LayerNorm.': 'heads.mlm.norm.',
    'text_encoder.cls.predictions.bias': 'heads.mlm.bias',
    'text_decoder.embeddings.': 'decoder.embeddings.',
    'text_decoder.cls.predictions.transform.dense.': 'decoder.words.transform.',
    'text_decoder.cls.predictions.transform.LayerNorm.': 'decoder.words.norm.',
    'text_decoder.cls.predictions.bias': 'decoder.words.bias',
    'vision_proj.': 'backbone.image_proj.',
    'text_proj.': 'backbone.text_proj.',
    'itm_head.': 'heads.itm.classifier.',
    'cls_head.': 'heads.classification.classifier.',
    'ta_head.': 'heads.assignment.',
}
_LAYER = {theirs: ours for ours, theirs in BERT_NAMES.items()}
_FUSION = 'backbone.fusion.layers.'


@reads(LAYOUT)
def read_weights(path: Path) -> dict[str, Tensor]:
    """Reads the tensors of a file, without the prefixes of wrappers and of BERT."""
    return {
        name.removeprefix('module.').replace('.bert.', '.'): value
        for name, value in select_tensors(read_checkpoint(path), 'model').items()
    }


def describe(weights: dict[str, Tensor]) -> str:
    """Names the task of a file by its keys."""
    for key, task in _TASKS.items():
        if any(name.startswith(key) for name in weights):
            return task
    return 'pre-training' if 'text_encoder.cls.predictions.bias' in weights else 'retrieval'


def rename(name: str, image_blocks: list[int] | None = None) -> str | None:
    """Returns our name of a weight of ALBEF; None if our model has no such weight."""
    if re.match(r'(visual_encoder|text_(en|de)coder|vision_proj|text_proj|cls_head)_m\.', name):
        online = rename(name.replace('_m.', '.', 1), image_blocks)
        return online and f'teacher.module.{online.removeprefix("heads.")}'
    if match := re.match(r'visual_encoder\.blocks\.(\d+)\.(.+)', name):
        block = int(match[1])
        if image_blocks is not None and block not in image_blocks:
            return None
        index = block if image_blocks is None else image_blocks.index(block)
        return f'backbone.image_encoder.vit.blocks.{index}.{match[2]}'
    if match := re.match(r'text_(en|de)coder\.encoder\.layer\.(\d+)\.(.+)\.(\w+)', name):
        is_decoder = match[1] == 'de'
        layer = int(match[2]) - (0 if is_decoder else FIRST_FUSION_LAYER)
        if layer >= 0:
            module = _LAYER.get(match[3])
            layers = 'decoder.layers.' if is_decoder else _FUSION
            return module and f'{layers}{layer}.{module}.{match[4]}'
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


def fit_layers(renamed: dict[str, Tensor], fusion: FusionEncoder) -> dict[str, Tensor]:
    """Copies each fusion layer where the model has one for each of two images, as ALBEF does.

    Raises:
        ValueError: when the model has another number of layers than the file.
    """
    in_file, in_model = count_layers(renamed), len(fusion.layers)
    if in_file in (0, in_model):
        return renamed
    if in_file == fusion.depth:
        copied = dict(renamed)
        copy_layers(copied)
        return copied
    if in_file == 2 * fusion.depth:
        raise ValueError(
            f'the file has {in_file} fusion layers, a copy of each for both images of NLVR2, and '
            f'the model has {in_model}: use a config with backbone.fusion.share_two_images=False, '
            'as configs/acerpe/nlvr2_albef.py'
        )
    raise ValueError(
        f'the file has {in_file} fusion layers and the model {in_model}: use a config with '
        f'backbone.fusion.depth={in_file}'
    )


def fit(
    renamed: dict[str, Tensor], target: dict[str, Tensor]
) -> tuple[dict[str, Tensor], list[str], list[str]]:
    """Selects the weights that a model has.

    Returns:
        The weights, the names that the model does not have, and the names that the file lacks
        (without those of a teacher, which is copied on loading).

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
    missing = target.keys() - fitting.keys()
    return fitting, extra, sorted(name for name in missing if not name.startswith('teacher.'))


def is_idle(name: str, model: nn.Module) -> bool:
    """Returns whether a test does not depend on a weight that files of ALBEF lack."""
    if isinstance(model, AlbefClassifier | AlbefVQA):  # they contrast nothing
        return name.startswith(('backbone.image_proj.', 'backbone.text_proj.'))
    return name.startswith('queue.')  # filled in training


def convert_file(path: Path, model: nn.Module, image_blocks: list[int] | None = None) -> Converted:
    """Converts a file of ALBEF for a model.

    Args:
        path: a file of ALBEF, pre-trained or fine-tuned.
        model: the model that the weights are for.
        image_blocks: indices of the image encoder's blocks to take, in order; None for the first.

    Raises:
        FileError: if the file does not fit the model.
    """
    weights, target = read_weights(path), model.state_dict()
    with explain_errors(path, LAYOUT):
        renamed, unused = convert(weights, image_blocks)
        renamed = fit_layers(renamed, model.backbone.fusion)
        if isinstance(model, AlbefVQA):
            fill_missing_decoder(model, renamed)
        fitting, extra, missing = fit(renamed, target)
    idle = [name for name in missing if is_idle(name, model)]
    reports = {
        'not used, no such name in the model': unused + extra,
        'missing in the file, initial values are kept': [n for n in missing if n not in idle],
        'missing in the file and of no effect in a test, initial values are written': idle,
    }
    state_dict = fitting | {name: target[name] for name in idle}
    return Converted(state_dict, reports, f'ALBEF of {describe(weights)}')

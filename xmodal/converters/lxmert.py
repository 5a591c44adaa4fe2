"""The released weights of LXMERT as those of this package, and back."""

import re
from pathlib import Path

import torch
from torch import Tensor, nn

from xmodal.checkpoint_file import read_checkpoint, select_tensors
from xmodal.converters.converted import Converted
from xmodal.files import explain_errors, reads
from xmodal.models.fusion.pretrained import BERT_NAMES

# Our modules and those of the released files; N is the index of a layer.
_MODULES = {
    'backbone.text_encoder.bert.embeddings': 'bert.embeddings',
    'backbone.text_encoder.bert.encoder.layer': 'bert.encoder.layer',
    'backbone.image_encoder.embedding.features_norm': 'bert.encoder.visn_fc.visn_layer_norm',
    'backbone.image_encoder.embedding.features': 'bert.encoder.visn_fc.visn_fc',
    'backbone.image_encoder.embedding.boxes_norm': 'bert.encoder.visn_fc.box_layer_norm',
    'backbone.image_encoder.embedding.boxes': 'bert.encoder.visn_fc.box_fc',
    'backbone.pooler': 'bert.pooler.dense',
    'heads.mlm.transform': 'cls.predictions.transform.dense',
    'heads.mlm.norm': 'cls.predictions.transform.LayerNorm',
    'heads.mlm.bias': 'cls.predictions.bias',
    'heads.matching.classifier': 'cls.seq_relationship',
    'heads.objects.transform': 'obj_predict_head.transform.dense',
    'heads.objects.norm': 'obj_predict_head.transform.LayerNorm',
    'heads.objects.decoders.objects': 'obj_predict_head.decoder_dict.obj',
    'heads.objects.decoders.attributes': 'obj_predict_head.decoder_dict.attr',
    'heads.objects.decoders.features': 'obj_predict_head.decoder_dict.feat',
    'heads.answers.classifier': 'answer_head.logit_fc',
}
_MODULES |= {
    f'backbone.image_encoder.layers.N.{ours}': f'bert.encoder.r_layers.N.{theirs}'
    for ours, theirs in BERT_NAMES.items()
    if not ours.startswith('cross_')
}
_CROSS_LAYER = {
    'cross_attention.0.attention.q_proj': 'visual_attention.att.query',
    'cross_attention.0.attention.k_proj': 'visual_attention.att.key',
    'cross_attention.0.attention.v_proj': 'visual_attention.att.value',
    'cross_attention.0.attention.out_proj': 'visual_attention.output.dense',
    'cross_attention.0.norm': 'visual_attention.output.LayerNorm',
}
for _ours, _theirs in (('text', 'lang'), ('image', 'visn')):
    _CROSS_LAYER |= {
        f'{_ours}_layer.self_attention.q_proj': f'{_theirs}_self_att.self.query',
        f'{_ours}_layer.self_attention.k_proj': f'{_theirs}_self_att.self.key',
        f'{_ours}_layer.self_attention.v_proj': f'{_theirs}_self_att.self.value',
        f'{_ours}_layer.self_attention.out_proj': f'{_theirs}_self_att.output.dense',
        f'{_ours}_layer.self_norm': f'{_theirs}_self_att.output.LayerNorm',
        f'{_ours}_layer.feed_forward.fc1': f'{_theirs}_inter.dense',
        f'{_ours}_layer.feed_forward.fc2': f'{_theirs}_output.dense',
        f'{_ours}_layer.feed_forward.norm': f'{_theirs}_output.LayerNorm',
    }
_MODULES |= {
    f'backbone.fusion.layers.N.{ours}': f'bert.encoder.x_layers.N.{theirs}'
    for ours, theirs in _CROSS_LAYER.items()
}
LAYOUT = 'weights of LXMERT, or a checkpoint of one'
_WORDS, _DECODER = 'bert.embeddings.word_embeddings.weight', 'cls.predictions.decoder.weight'
_EXTRA = '_extra_state'


@reads(LAYOUT)
def read_weights(path: Path) -> dict[str, Tensor]:
    """Reads the tensors of a file, without the prefixes of wrappers."""
    content = read_checkpoint(path)
    weights = select_tensors(content, 'state_dict' if 'state_dict' in content else 'model')
    return {name.removeprefix('module.'): value for name, value in weights.items()}


def their_name(ours: str) -> str | None:
    """Returns the name of one of our weights in the released files; None if they do not have it."""
    layer = re.search(r'layers\.(\d+)\.', ours)
    plain = re.sub(r'layers\.\d+\.', 'layers.N.', ours)
    # Some names are prefixes of others: the longest match counts.
    for module in sorted(_MODULES, key=len, reverse=True):
        if plain == module or plain.startswith(f'{module}.'):
            theirs = _MODULES[module] + plain.removeprefix(module)
            return theirs.replace('.N.', f'.{layer[1]}.') if layer else theirs
    return None


def released_name(name: str) -> str:
    """Returns the name in the released files of a weight of transformers or of these files."""
    if name.startswith(('embeddings.', 'encoder.', 'pooler.')):  # LxmertModel
        return f'bert.{name}'
    return re.sub(r'^lxmert\.', 'bert.', name)


def convert(
    weights: dict[str, Tensor], target: dict[str, Tensor]
) -> tuple[dict[str, Tensor], list[str], list[str]]:
    """Renames weights for a model.

    Args:
        weights: the weights of a file.
        target: state dict of the model of the config.

    Returns:
        The renamed weights, the names that the model does not have, and the names of the model
        that the file lacks.

    Raises:
        ValueError: if no weight fits, a weight has another shape, or the decoder of masked words is
            not tied to the word embeddings.
    """
    weights = {released_name(name): value for name, value in weights.items()}
    decoder = weights.pop(_DECODER, None)
    if decoder is not None and not torch.equal(decoder, weights.get(_WORDS, decoder)):
        raise ValueError(
            f'{_DECODER} differs from the word embeddings; here and in LXMERT they are tied'
        )
    names = {name: theirs for name in target if (theirs := their_name(name))}
    fitting = {name: weights[theirs] for name, theirs in names.items() if theirs in weights}
    if not fitting:
        raise ValueError(
            'none of the weights belongs to the model: is this a file of LXMERT? Its names begin '
            f"'{next(iter(weights), '')}'"
        )
    for name, value in fitting.items():
        if value.shape != target[name].shape:
            raise ValueError(
                f'{names[name]} has the shape {tuple(value.shape)} in the file and {name} '
                f'{tuple(target[name].shape)} in the model: the config has another size, or '
                'another answer_list than that of the weights'
            )
    unused = sorted(weights.keys() - {names[name] for name in fitting})
    states = {name: value for name, value in target.items() if name.endswith(_EXTRA)}
    missing = sorted(target.keys() - fitting.keys() - states.keys())
    return fitting | states, unused, missing


def export(weights: dict[str, Tensor], dialect: str) -> tuple[dict[str, Tensor], list[str]]:
    """Renames our weights to those of LXMERT.

    Args:
        weights: the weights of a checkpoint.
        dialect: 'released' or 'transformers'.

    Returns:
        The renamed weights, and the names that LXMERT does not have.

    Raises:
        ValueError: if no weight is one of LXMERT, or the cross-attention is not shared between the
            directions.
    """
    unshared = [name for name in weights if re.search(r'cross_attention\.1\.', name)]
    if unshared:
        raise ValueError(
            f'{unshared[0]}: LXMERT has one cross-attention for both directions, and this model '
            'was trained with share_cross_attention=False'
        )
    renamed, unused = {}, []
    for name, value in weights.items():
        theirs = their_name(name)
        if theirs is not None:
            renamed[theirs] = value
        elif not name.endswith(_EXTRA):
            unused.append(name)
    if not renamed:
        raise ValueError('none of the weights belongs to an LXMERT: is this a checkpoint of one?')
    if 'cls.predictions.bias' in renamed:
        renamed[_DECODER] = renamed[_WORDS]
    if dialect == 'transformers':
        renamed = {re.sub(r'^bert\.', 'lxmert.', name): x for name, x in renamed.items()}
    return renamed, unused


def convert_file(path: Path, model: nn.Module) -> Converted:
    """Converts a file of LXMERT, of its authors or of transformers, for a model.

    Raises:
        FileError: if the file does not fit the model.
    """
    weights = read_weights(path)
    with explain_errors(path, LAYOUT):
        converted, unused, missing = convert(weights, model.state_dict())
    reports = {
        'not used, no such name in the model': unused,
        'missing in the file, initial values are kept': missing,
    }
    return Converted(converted, reports)

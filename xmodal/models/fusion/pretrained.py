"""Layers of a BERT as start weights of the fusion encoder."""

from collections.abc import Iterable, Sequence

from transformers import BertModel

from xmodal.models.fusion.layer import FusionLayer
from xmodal.models.layers.bert import log_loaded, read_pretrained, require_sizes

#: Modules of a fusion layer, and their names in a layer of BERT with ALBEF's cross-attention.
BERT_NAMES = {
    'self_attention.q_proj': 'attention.self.query',
    'self_attention.k_proj': 'attention.self.key',
    'self_attention.v_proj': 'attention.self.value',
    'self_attention.out_proj': 'attention.output.dense',
    'self_norm': 'attention.output.LayerNorm',
    'cross_attention.q_proj': 'crossattention.self.query',
    'cross_attention.k_proj': 'crossattention.self.key',
    'cross_attention.v_proj': 'crossattention.self.value',
    'cross_attention.out_proj': 'crossattention.output.dense',
    'cross_norm': 'crossattention.output.LayerNorm',
    'feed_forward.fc1': 'intermediate.dense',
    'feed_forward.fc2': 'output.dense',
    'feed_forward.norm': 'output.LayerNorm',
}
_KEY = 'fusion.pretrained'


def load_bert_layers(layers: Sequence[FusionLayer], pretrained: str, first_layer: int) -> None:
    """Copies self-attention, feed-forward and their norms from consecutive layers of a BERT.

    ALBEF starts so from layers 6 to 11 of BERT-base. A BERT has no cross-attention, which keeps its
    initial weights.

    Args:
        layers: the fusion layers.
        pretrained: a hub name or a directory with weights.
        first_layer: the layer of BERT, counted from 0, that the first fusion layer starts from.

    Raises:
        FileNotFoundError: when the weights can be neither read nor downloaded.
        ValueError: when the BERT has other sizes or too few layers.
    """
    bert = read_pretrained(BertModel, pretrained, _KEY, add_pooling_layer=False)
    expected = {
        'hidden_size': layers[0].self_attention.q_proj.in_features,
        'num_attention_heads': layers[0].self_attention.num_heads,
        'intermediate_size': layers[0].feed_forward.fc1.out_features,
    }
    require_sizes(bert.config, expected, _KEY, pretrained)
    last_layer = first_layer + len(layers) - 1
    if bert.config.num_hidden_layers <= last_layer:
        raise ValueError(
            f"{_KEY}='{pretrained}' has {bert.config.num_hidden_layers} layers, and layers "
            f'{first_layer} to {last_layer} are asked for: lower fusion.first_layer={first_layer} '
            f'or fusion.depth={len(layers)}, or name a BERT of at least {last_layer + 1} layers'
        )
    in_bert = {ours: name for ours, name in BERT_NAMES.items() if not ours.startswith('cross')}
    count = 0
    for layer, source in zip(layers, bert.encoder.layer[first_layer : last_layer + 1], strict=True):
        for ours, name in in_bert.items():
            weights = source.get_submodule(name).state_dict()
            layer.get_submodule(ours).load_state_dict(weights)
            count += len(weights)
    loaded = f'{count} tensors of layers {first_layer} to {last_layer} ({_modules(in_bert)})'
    log_loaded(_KEY, pretrained, loaded, _modules(BERT_NAMES.keys() - in_bert))


def _modules(names: Iterable[str]) -> str:
    """The parts of a layer that ``names`` belong to."""
    return ', '.join(sorted({name.split('.')[0] for name in names}))

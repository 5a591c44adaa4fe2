"""Weights of BERT and its kin from ``transformers``, as start weights of parts of a model."""

from mmengine.logging import print_log
from transformers import BertConfig, PreTrainedModel

from xmodal.weights import find_weights

_RANDOM = 'A part of a model that is to be trained may start from random weights: pretrained=None.'


def read_pretrained(
    kind: type[PreTrainedModel], pretrained: str, key: str, **options
) -> PreTrainedModel:
    """Reads a model with all weights that its class has.

    Args:
        kind: the class of ``transformers`` to read it as.
        pretrained: a hub name, a directory with weights, or a source (:mod:`xmodal.weights`).
        key: the config key that ``pretrained`` is the value of, for errors.
        **options: passed to ``from_pretrained``.

    Raises:
        FileNotFoundError: when ``pretrained`` is neither a directory nor in the hub's cache and the
            hub can't be reached.
        ValueError: when it lacks some of the weights.
    """
    folder = find_weights(pretrained, key)
    try:
        model, report = kind.from_pretrained(folder, output_loading_info=True, **options)
    except OSError as error:
        raise FileNotFoundError(
            f"{key}='{pretrained}' is neither a directory with a {kind.__name__} (config.json, "
            f'model.safetensors, its tokenizer) nor reachable on the hub: {error}\n'
            f'Put a copy of the model in a directory and name that. {_RANDOM}'
        ) from error
    if missing := sorted(report['missing_keys']):
        raise ValueError(
            f"{key}='{pretrained}' lacks {len(missing)} weights of a {kind.__name__} "
            f'({", ".join(missing[:3])}, …): name one that has them. {_RANDOM}'
        )
    return model


def require_sizes(config: BertConfig, expected: dict[str, int], key: str, pretrained: str) -> None:
    """Refuses a BERT of other sizes than ``expected``, which has names of ``BertConfig``.

    Raises:
        ValueError: names the sizes that differ.
    """
    wrong = [
        f'{name}={getattr(config, name)}, expected {size}'
        for name, size in expected.items()
        if getattr(config, name) != size
    ]
    if wrong:
        raise ValueError(
            f"{key}='{pretrained}' is a BERT with {'; '.join(wrong)}: name one of the sizes of the "
            'model, or give the model its sizes'
        )


def log_loaded(key: str, pretrained: str, loaded: str, initial: str = '') -> None:
    """Logs which modules were loaded, and which keep their initial weights."""
    rest = f'; not in BERT, initial weights kept: {initial}' if initial else ''
    print_log(f"{key}='{pretrained}': loaded {loaded}{rest}", logger='current')

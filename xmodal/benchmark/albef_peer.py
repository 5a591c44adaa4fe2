"""ALBEF's public code (github.com/salesforce/ALBEF) as it is, under the libraries of today.

It was written for transformers 4.8, so that names which have moved since are put back while it is
imported, and methods which are gone are given to its BERT. Nothing of its arithmetic is changed.
"""

import sys
import warnings
from argparse import Namespace
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import torch
import transformers.file_utils
import transformers.modeling_utils
import transformers.pytorch_utils
from torch import Tensor, nn

from xmodal.benchmark.pretraining import ALPHA
from xmodal.errors import ConfigError
from xmodal.structures import ImageTextBatch


def load(folder: Path, tokenizer: object, image_size: int, queue_length: int) -> nn.Module:
    """Builds the model of Pretrain.py with random weights.

    Args:
        folder: a checkout of the public code.
        tokenizer: of transformers, with the ids of [PAD], [CLS] and [MASK].
        image_size: height and width in pixels.
        queue_length: K.

    Raises:
        ConfigError: if the folder has no such code.
    """
    if not (folder / 'models' / 'model_pretrain.py').is_file():
        raise ConfigError(f'--peer {folder} has no models/model_pretrain.py: expected ALBEF')
    _restore_names()
    sys.path.insert(0, str(folder))
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        model_pretrain, xbert = map(import_module, ('models.model_pretrain', 'models.xbert'))
    _restore_methods(xbert)
    model_pretrain.concat_all_gather = lambda vectors: vectors  # of a single process
    config = {
        'mlm_probability': 0.15,
        'embed_dim': 256,
        'image_res': image_size,
        'vision_width': 768,
        'bert_config': str(folder / 'configs' / 'config_bert.json'),
        'temp': 0.07,
        'queue_size': queue_length,
        'momentum': 0.995,
    }
    return model_pretrain.ALBEF('', tokenizer, config, init_deit=False)


def make_optimizer(model: nn.Module) -> torch.optim.Optimizer:
    """Its own optimizer, by the code that ``load`` has found."""
    options = Namespace(opt='adamW', lr=1e-4, weight_decay=0.02)
    return import_module('optim').create_optimizer(options, model)


def losses(model: nn.Module, batch: ImageTextBatch) -> dict[str, Tensor]:
    """Its three losses under our names."""
    mask = batch.attention_mask.long()
    text = SimpleNamespace(input_ids=batch.input_ids, attention_mask=mask)
    mlm, itc, itm = model(batch.images, text, alpha=ALPHA)
    return {'loss_itc': itc, 'loss_itm': itm, 'loss_mlm': mlm}


def weights(model: nn.Module) -> dict[str, Tensor]:
    """Its weights by the names of its files."""
    return {name.replace('.bert.', '.'): value for name, value in model.state_dict().items()}


def give_weights(converted: dict[str, Tensor], model: nn.Module) -> None:
    """Gives our model and its teacher the peer's weights.

    Args:
        converted: the peer's weights by our names.
        model: ours, changed in place.

    Raises:
        ConfigError: if a weight of ours has no counterpart.
    """
    missing, _ = model.load_state_dict(converted, strict=False)
    if lacking := [name for name in missing if not name.startswith('queue.')]:
        raise ConfigError(f'--peer needs a config like albef_4m.py: ALBEF has no {lacking}')


def give_queue(peer: nn.Module, model: nn.Module) -> None:
    """Fills our model's queue with the peer's."""
    queue = model.queue
    queue.image_embeddings.copy_(peer.image_queue.T)
    queue.text_embeddings.copy_(peer.text_queue.T)
    for ids in (queue.image_ids, queue.text_ids):  # none is of the batch
        torch.arange(10**6, 10**6 + len(ids), out=ids)


def _restore_names() -> None:
    """Puts names that transformers has moved, or dropped, where ALBEF imports them."""
    moved = transformers.modeling_utils
    moved.apply_chunking_to_forward = transformers.pytorch_utils.apply_chunking_to_forward
    moved.prune_linear_layer = transformers.pytorch_utils.prune_linear_layer
    moved.find_pruneable_heads_and_indices = None  # never called
    # Decorators that only write documentation.
    for name in ('add_code_sample_docstrings', 'replace_return_docstrings'):
        setattr(transformers.file_utils, name, lambda **_: lambda function: function)


def _restore_methods(xbert: object) -> None:
    """Gives its BERT what it inherited from transformers, and random weights without a download."""

    def from_pretrained(cls: type, name: str, config: object) -> nn.Module:
        model = cls(config)
        embeddings = model.bert.embeddings.word_embeddings
        model.cls.predictions.decoder.weight = embeddings.weight  # tied
        return model

    base = xbert.BertPreTrainedModel
    base.init_weights = lambda self: self.apply(self._init_weights)
    base.get_head_mask = lambda self, mask, layers: [None] * layers
    base.invert_attention_mask = lambda self, mask: (
        (1.0 - mask[:, None, None].to(self.dtype)) * torch.finfo(self.dtype).min
    )
    xbert.BertForMaskedLM.from_pretrained = classmethod(from_pretrained)

"""Text encoders of any architecture of ``transformers``."""

import inspect

import torch
from torch import Tensor
from transformers import (
    MODEL_FOR_CAUSAL_LM_MAPPING,
    MODEL_FOR_MASKED_LM_MAPPING,
    MODEL_MAPPING,
    AutoConfig,
    PreTrainedConfig,
    PreTrainedModel,
    Siglip2TextModel,
    SiglipTextModel,
)  # fmt: skip

from xmodal.models.backbones.encoder import Encoder
from xmodal.models.layers.bert import read_pretrained
from xmodal.registry import MODELS
from xmodal.structures import Tokens
from xmodal.weights import find_weights

_KEY = 'text_encoder'
# Parts of models that AutoModel does not know by themselves.
_PARTS = {'siglip_text_model': SiglipTextModel, 'siglip2_text_model': Siglip2TextModel}


@MODELS.register_module()
class TransformersTextEncoder(Encoder):
    """A text encoder that ``transformers.AutoModel`` knows: BERT, MPNet, RoBERTa, CLIP, SigLIP, …

    The first token is the summary of a text. It is [CLS] of a BERT. CLIP's sums a text up in its
    last token, which takes the place of the first, the same in every text; so does a language model
    whose words see those before them alone, such as GPT-2. SigLIP has no token at the start: its
    tokenizer gets one here (:func:`xmodal.models.base.build_tokenizer`), which SigLIP does not see
    and whose place the pooled output takes. It reads texts that are padded to its longest one,
    without a mask, as it was trained.

    Args:
        config: a directory that holds a ``config.json``, a name on a hub, a source of one
            (:mod:`xmodal.weights`), or keyword arguments of a configuration of ``transformers``
            with its ``model_type``. Of a model of images and texts it is the text's part.
        num_layers: the number of layers kept; None keeps all.
        pretrained: a hub name, a directory with weights, or a source. They are read when training
            starts (``init_weights``).

    Shape:
        input_ids: (B, N) int64; attention_mask: (B, N) bool. Returns tokens of (B, N, D).

    Raises:
        FileNotFoundError: when there is no such configuration.
        ValueError: when it is not one of a text encoder.
    """

    has_cls = True
    has_block_inputs = False

    def __init__(
        self,
        config: dict | str,
        num_layers: int | None = None,
        pretrained: str | None = None,
    ) -> None:
        super().__init__()
        self.config = _read_config(config)
        if num_layers is not None:
            self.config.num_hidden_layers = num_layers
        self.is_named = isinstance(config, str)
        self.pretrained = pretrained
        model = _PARTS.get(self.config.model_type) or MODEL_MAPPING[type(self.config)]
        has_pooler = 'add_pooling_layer' in inspect.signature(model).parameters
        self.options = {'add_pooling_layer': False} if has_pooler else {}
        self.model = model(self.config, **self.options)
        self.is_causal = _is_causal(self.model)

    @property
    def kind(self) -> str:
        """How a text is summed up: 'clip', 'siglip', or 'bert-like'."""
        name = self.config.model_type
        return next((kind for kind in ('siglip', 'clip') if kind in name), 'bert-like')

    @property
    def embed_dims(self) -> int:
        """D, the width of the tokens."""
        return self.config.hidden_size

    @property
    def vocab_size(self) -> int:
        """Number of words."""
        return self.config.vocab_size

    @property
    def word_embeddings(self) -> Tensor:
        """The word vectors, (vocabulary, D), to which the MLM decoder is tied."""
        return self.model.get_input_embeddings().weight

    def init_weights(self) -> None:
        """Loads the pretrained weights, if any are asked for.

        Raises:
            FileNotFoundError: when they are neither in a directory nor reachable on the hub.
            ValueError: when some are missing, with their number.
        """
        if self.pretrained is not None:
            options = dict(config=self.config, **self.options)
            key = f'{_KEY}.pretrained'
            loaded = read_pretrained(type(self.model), self.pretrained, key, **options)
            self.model.load_state_dict(loaded.state_dict())

    def embed(self, input_ids: Tensor, attention_mask: Tensor) -> Tokens:
        """Word pieces (B, N) to word vectors; positions are added by the blocks."""
        return Tokens(self.model.get_input_embeddings()(input_ids), attention_mask)

    def encode(self, tokens: Tokens) -> Tokens:
        """Positions and the blocks."""
        encode = {'clip': self._clip, 'siglip': self._siglip}.get(self.kind, self._bert)
        return tokens.with_embeddings(encode(tokens.embeddings, tokens.attention_mask))

    def _bert(self, words: Tensor, mask: Tensor) -> Tensor:
        output = self.model(inputs_embeds=words, attention_mask=mask.long())
        tokens = output.last_hidden_state
        return _last_in_front(tokens, mask) if self.is_causal else tokens

    def _clip(self, words: Tensor, mask: Tensor) -> Tensor:
        count = words.shape[1]
        seen = torch.ones(count, count, dtype=torch.bool, device=words.device).tril()
        is_seen = seen & mask[:, None, None]
        bias = torch.zeros_like(is_seen, dtype=words.dtype)
        bias = bias.masked_fill(~is_seen, torch.finfo(words.dtype).min)
        return _last_in_front(self._run(words, bias), mask)

    def _siglip(self, words: Tensor, mask: Tensor) -> Tensor:
        padding = self.word_embeddings[self.config.pad_token_id].to(words.dtype)
        rest = words.shape[1] - 1
        padded = padding.repeat(words.shape[0], max(rest, self.config.max_position_embeddings), 1)
        padded[:, :rest] = torch.where(mask[:, 1:, None], words[:, 1:], padding)
        tokens = self._run(padded, None)
        return torch.cat([self.model.head(tokens[:, -1:]), tokens[:, :rest]], 1)

    def _run(self, words: Tensor, bias: Tensor | None) -> Tensor:
        """Positions, blocks and the last norm, as CLIP and SigLIP have them."""
        embeddings = self.model.embeddings(inputs_embeds=words)
        output = self.model.encoder(inputs_embeds=embeddings, attention_mask=bias)
        return self.model.final_layer_norm(output.last_hidden_state)


def _last_in_front(tokens: Tensor, mask: Tensor) -> Tensor:
    """Tokens (B, N, D) with the last real one of each text in the place of the first."""
    last = mask.sum(1) - 1
    rows = torch.arange(tokens.shape[0], device=last.device)  # len() would fix an export's batch
    summary = tokens[rows, last]
    return torch.cat([summary[:, None], tokens[:, 1:]], 1)


def _is_causal(model: PreTrainedModel) -> bool:
    """Whether words see those before them alone.

    The attention of most models says so. That of BLOOM, XGLM and MPT does not, and Mamba has none.
    """
    said = [part.is_causal for part in model.modules() if hasattr(part, 'is_causal')]
    kind = type(model.config)
    is_generator = kind in MODEL_FOR_CAUSAL_LM_MAPPING and kind not in MODEL_FOR_MASKED_LM_MAPPING
    return any(said) if said else is_generator


def _read_config(config: dict | str) -> PreTrainedConfig:
    """The configuration of the text's part of a model.

    Raises:
        FileNotFoundError: when there is none.
        ValueError: when it has no known ``model_type``, or is not one of a text encoder.
    """
    key = f'{_KEY}.config'
    try:
        if isinstance(config, str):
            found = AutoConfig.from_pretrained(find_weights(config, key))
        else:
            options = dict(config)
            found = AutoConfig.for_model(options.pop('model_type', None), **options)
    except OSError as error:
        raise FileNotFoundError(
            f"{key}='{config}' is neither a directory with a config.json nor reachable on the hub: "
            f'{error}'
        ) from error
    except ValueError as error:
        raise ValueError(
            f"{key}={config!r}: its model_type is none that transformers knows ('bert', 'mpnet', "
            "'clip_text_model', 'siglip_text_model', …)"
        ) from error
    found = found.get_text_config()
    if found.is_encoder_decoder:
        raise ValueError(
            f"{key}={config!r} is a '{found.model_type}', an encoder with a decoder: expected a "
            'text encoder, or a language model'
        )
    if found.model_type not in _PARTS and type(found) not in MODEL_MAPPING:
        raise ValueError(
            f"{key}={config!r} is a '{found.model_type}', of which transformers.AutoModel has no "
            'model by itself: expected a text encoder that it has, or a CLIP or SigLIP'
        )
    if getattr(found, 'vocab_size', None) is None or not hasattr(found, 'hidden_size'):
        raise ValueError(f"{key}={config!r} is a '{found.model_type}', expected a text encoder")
    if found.model_type.startswith('siglip') and found.projection_size != found.hidden_size:
        raise ValueError(
            f'{key}={config!r} has projection_size={found.projection_size}, expected hidden_size='
            f'{found.hidden_size}: the pooled output is a token'
        )
    return found

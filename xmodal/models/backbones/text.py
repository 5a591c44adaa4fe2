"""Text encoders."""

from torch import Tensor, nn
from transformers import BertConfig, BertModel
from transformers.masking_utils import create_bidirectional_mask

from xmodal import functional as F
from xmodal.models.backbones.encoder import Encoder
from xmodal.models.layers import xavier_linear
from xmodal.models.layers.bert import read_pretrained
from xmodal.registry import MODELS
from xmodal.structures import Tokens
from xmodal.weights import find_weights


@MODELS.register_module()
class BertTextEncoder(Encoder):
    """The first L layers of a BERT, from ``transformers``.

    Args:
        config: keyword arguments of ``transformers.BertConfig`` (what is not given is
            BERT-base's), or a directory that holds a ``config.json``, or a source of one
            (:mod:`xmodal.weights`).
        num_layers: L, the number of layers kept; None keeps all.
        pretrained: a hub name, a directory with weights, or a source (:mod:`xmodal.weights`). They
            are read when training starts (``init_weights``), not when the model is built, so that
            testing a checkpoint never needs them.

    Shape:
        input_ids: (B, N) int64, [CLS] first; attention_mask: (B, N) bool.
        Returns tokens of (B, N, D).
    """

    has_cls = True

    def __init__(
        self,
        config: dict | str | None = None,
        num_layers: int | None = None,
        pretrained: str | None = None,
    ) -> None:
        super().__init__()
        if isinstance(config, str):
            self.config = BertConfig.from_pretrained(find_weights(config, 'text_encoder.config'))
        else:
            # transformers keeps any key as an attribute that nobody reads.
            if unknown := sorted((config or {}).keys() - BertConfig().to_dict().keys()):
                raise ValueError(
                    f'text_encoder.config has {unknown}, which transformers.BertConfig has not'
                )
            self.config = BertConfig(**(config or {}))
        if num_layers is not None:
            self.config.num_hidden_layers = num_layers
        self.is_named = isinstance(config, str)
        self.pretrained = pretrained
        self.bert = BertModel(self.config, add_pooling_layer=False)

    @property
    def embed_dims(self) -> int:
        """D, the width of the tokens."""
        return self.config.hidden_size

    @property
    def vocab_size(self) -> int:
        """Number of words."""
        return self.config.vocab_size

    @property
    def word_embeddings(self) -> nn.Parameter:
        """The word vectors, (vocabulary, D), to which the MLM decoder is tied."""
        return self.bert.embeddings.word_embeddings.weight

    def init_weights(self) -> None:
        """Loads the pretrained weights, if any are asked for.

        Raises:
            FileNotFoundError: when ``pretrained`` is neither a directory nor in the hub's cache
                and the hub can't be reached.
            ValueError: when it lacks weights, as those of further layers.
        """
        if self.pretrained is None:
            return
        options = dict(config=self.config, add_pooling_layer=False)
        loaded = read_pretrained(BertModel, self.pretrained, 'text_encoder.pretrained', **options)
        self.bert.load_state_dict(loaded.state_dict())

    def embed(self, input_ids: Tensor, attention_mask: Tensor) -> Tokens:
        """Word pieces (B, N) to the sum of word, position and segment embeddings, normalised."""
        return Tokens(self.bert.embeddings(input_ids), attention_mask)

    def encode(self, tokens: Tokens) -> Tokens:
        """The L layers of BERT."""
        output = self.bert.encoder(tokens.embeddings, attention_mask=self._mask(tokens))
        return tokens.with_embeddings(output.last_hidden_state)

    def encode_words(self, input_ids: Tensor, attention_mask: Tensor, num_layers: int) -> Tokens:
        """As :meth:`forward`, by the first layers alone, none of them for 0."""
        tokens = self.embed(input_ids, attention_mask)
        mask, words = self._mask(tokens), tokens.embeddings
        for layer in self.bert.encoder.layer[:num_layers]:
            words = layer(words, mask)
        return tokens.with_embeddings(words)

    def _mask(self, tokens: Tokens) -> Tensor | None:
        # Positional arguments: transformers 5 renamed one of them between its releases.
        return create_bidirectional_mask(
            self.bert.config, tokens.embeddings, tokens.attention_mask.long()
        )


@MODELS.register_module()
class BertWordEncoder(BertTextEncoder):
    """A BERT for matching: a linear layer and an L2 norm over every word piece.

    [CLS] and [SEP] stay in the set, as ``<start>`` and ``<end>`` do with :class:`GruTextEncoder`.

    Args:
        embed_dims: D, width of the tokens.
        **bert: see :class:`BertTextEncoder`.

    Shape:
        input_ids: (B, L) int64, [CLS] first; attention_mask: (B, L) bool.
        Returns tokens of (B, L, D).
    """

    def __init__(self, embed_dims: int = 1024, **bert) -> None:
        super().__init__(**bert)
        self.projection = xavier_linear(self.config.hidden_size, embed_dims)

    @property
    def embed_dims(self) -> int:
        """D, the width of the tokens."""
        return self.projection.out_features

    def encode(self, tokens: Tokens) -> Tokens:
        """The layers of BERT, the linear layer and the norm."""
        tokens = super().encode(tokens)
        return tokens.with_embeddings(F.l2_normalize(self.projection(tokens.embeddings)))

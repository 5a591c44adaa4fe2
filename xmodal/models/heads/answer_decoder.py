"""The decoder of answers."""

from copy import deepcopy

import torch
from torch import Tensor, nn

from xmodal.models.backbones.text import BertTextEncoder
from xmodal.models.fusion.encoder import FusionEncoder
from xmodal.models.heads.mlm import MLMHead
from xmodal.models.layers import NO_TERMS
from xmodal.structures import Tokens


class AnswerDecoder(nn.Module):
    """A causal decoder with cross-attention to the fused words of a question, not to the image.

    It starts from the layers of the fusion encoder, the embeddings of the text encoder and the MLM
    head (ALBEF, Sec. 5); ``SOURCES`` names them. A word attends to the words before it and then to
    the question.

    A question has K answers of L word pieces, (B, K, L), [CLS] first and [SEP] last. Self-attention
    keeps them apart. In cross-attention they are one long query, so that the question's keys and
    values are computed once for all answers.

    Args:
        text_encoder: whose embeddings are copied.
        fusion: whose layers are copied.
    """

    SOURCES = {
        'embeddings.': 'backbone.text_encoder.bert.embeddings.',
        'layers.': 'backbone.fusion.layers.',
        'words.': 'heads.mlm.',
    }

    def __init__(self, text_encoder: BertTextEncoder, fusion: FusionEncoder) -> None:
        super().__init__()
        self.embeddings = deepcopy(text_encoder.bert.embeddings)
        self.layers = deepcopy(fusion.layers)
        self.words = MLMHead(fusion.embed_dims, text_encoder.vocab_size)

    def copy_from(self, text_encoder: BertTextEncoder, fusion: FusionEncoder) -> None:
        """Copies their weights."""
        self.embeddings.load_state_dict(text_encoder.bert.embeddings.state_dict())
        self.layers.load_state_dict(fusion.layers.state_dict())

    def forward(self, answer_ids: Tensor, question: Tokens) -> Tensor:
        """Word pieces (B, K, L) to tokens (B, K, L, D), causal within an answer."""
        count, length = answer_ids.shape[1:]
        tokens = self.embeddings(answer_ids.flatten(0, 1))  # (B K, L, D)
        later = torch.full((length, length), -torch.inf, device=tokens.device).triu(1)
        for layer in self.layers:
            tokens = layer.attend_self(tokens, None, later[None, None])
            tokens = tokens.unflatten(0, (-1, count)).flatten(1, 2)  # (B, K L, D)
            tokens, _ = layer.attend_cross(
                tokens,
                layer.cross_attention.project(tokens, context=False),
                layer.cross_attention.project(question.embeddings, query=False),
                question.attention_mask,
                NO_TERMS,
                need_weights=False,
            )
            tokens = tokens.unflatten(1, (count, length)).flatten(0, 1)
        return tokens.unflatten(0, (-1, count))

    def logits(self, tokens: Tensor) -> Tensor:
        """Tokens (…, D) to logits of the next word, (…, vocabulary)."""
        return self.words(tokens, self.embeddings.word_embeddings.weight)

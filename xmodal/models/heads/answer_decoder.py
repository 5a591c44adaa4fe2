"""The decoder of answers."""

from copy import deepcopy

import torch
from torch import Tensor, nn

from xmodal.lora import merge_lora
from xmodal.models.backbones.text import BertTextEncoder
from xmodal.models.fusion.encoder import FusionEncoder
from xmodal.models.fusion.layer import FusionLayer
from xmodal.models.heads.mlm import MLMHead
from xmodal.models.layers import NO_TERMS
from xmodal.structures import Tokens


class AnswerDecoderLayer(FusionLayer):
    """A layer of the fusion encoder, whose words are those of answers."""

    def forward(self, tokens: Tensor, later: Tensor, question: Tokens) -> Tensor:
        """New tokens of the answers.

        Args:
            tokens: of K answers a question, (B K, L, D).
            later: −∞ where a word would see a later one, else 0, (L, L).
            question: of the fusion encoder.

        Returns:
            (B K, L, D).
        """
        tokens = self.attend_self(tokens, None, later[None, None])
        answers = tokens.reshape(len(question.embeddings), -1, tokens.shape[-1])  # (B, K L, D)
        answers, _ = self.attend_cross(
            answers,
            self.cross_attention.project(answers, context=False),
            self.cross_attention.project(question.embeddings, query=False),
            question.attention_mask,
            NO_TERMS,
            need_weights=False,
        )
        return answers.reshape(tokens.shape)


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

    Raises:
        ValueError: when the text encoder is no BERT, or its words have another width than the
            fusion encoder.
    """

    SOURCES = {
        'embeddings.': 'backbone.text_encoder.bert.embeddings.',
        'layers.': 'backbone.fusion.layers.',
        'words.': 'heads.mlm.',
    }

    def __init__(self, text_encoder: BertTextEncoder, fusion: FusionEncoder) -> None:
        super().__init__()
        if not isinstance(text_encoder, BertTextEncoder):
            raise ValueError(
                "the answers' decoder copies the embeddings of a BertTextEncoder, found backbone."
                f"text_encoder.type='{type(text_encoder).__name__}': take a BertTextEncoder, or "
                'AlbefVectorVQA, which takes any text encoder'
            )
        if text_encoder.config.hidden_size != fusion.embed_dims:
            raise ValueError(
                f"backbone.text_encoder's words are {text_encoder.config.hidden_size} wide and "
                f"fusion.embed_dims={fusion.embed_dims}: the answers' decoder copies both and "
                'needs one width, without backbone.text_adapter; AlbefVectorVQA takes any'
            )
        # They learn, as the layers do, beside a text encoder that is frozen or has LoRA.
        self.embeddings = deepcopy(text_encoder.bert.embeddings).requires_grad_()
        for part in self.embeddings.modules():
            part.is_frozen = False
        with torch.device('meta'):  # without random numbers
            layers = [AnswerDecoderLayer(**fusion.layer_options) for _ in fusion.layers]
        self.layers = nn.ModuleList(layers)
        self.layers.load_state_dict(_layer_weights(fusion), assign=True)
        self.words = MLMHead(fusion.embed_dims, text_encoder.vocab_size)

    def copy_from(self, text_encoder: BertTextEncoder, fusion: FusionEncoder) -> None:
        """Copies their weights."""
        self.embeddings.load_state_dict(text_encoder.bert.embeddings.state_dict())
        self.layers.load_state_dict(_layer_weights(fusion))

    def check_length(self, longest: int) -> None:
        """Raises ValueError for answers of ``longest`` word pieces, if positions are fewer."""
        positions = self.embeddings.position_embeddings.num_embeddings
        if longest >= positions:  # [CLS] has one of its own
            raise ValueError(
                f'model.max_answer_length={longest} and [CLS] need {longest + 1} positions, and '
                "the answers' decoder has those of the text encoder, backbone.text_encoder.config."
                f'max_position_embeddings={positions}: lower the one or raise the other'
            )

    def forward(self, answer_ids: Tensor, question: Tokens) -> Tensor:
        """Word pieces (B, K, L) to tokens (B, K, L, D), causal within an answer."""
        count, length = answer_ids.shape[1:]
        tokens = self.embeddings(answer_ids.flatten(0, 1))  # (B K, L, D)
        later = torch.full((length, length), -torch.inf, device=tokens.device).triu(1)
        for layer in self.layers:
            tokens = layer(tokens, later, question)
        return tokens.unflatten(0, (-1, count))

    def logits(self, tokens: Tensor) -> Tensor:
        """Tokens (…, D) to logits of the next word, (…, vocabulary)."""
        return self.words(tokens, self.embeddings.word_embeddings.weight)


def _layer_weights(fusion: FusionEncoder) -> dict[str, Tensor]:
    """Copies of the weights of the layers, with LoRA merged into them."""
    layers = deepcopy(fusion.layers)
    merge_lora(layers)
    return layers.state_dict()

"""The parts of a model that other runtimes run: modules of tensors in and tensors out."""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram

from xmodal.structures import Tokens


class ImageTower(nn.Module):
    """Pixels to tokens and an embedding.

    Args:
        model: a model with ``encode_image`` and pixels as input.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """RGB pixels uint8 (B, 3, H, W) to tokens (B, 1 + M, D) and embeddings (B, d)."""
        pixels = self.model.data_preprocessor.normalize(images)
        tokens, embedding = self.model.encode_image(pixels)
        return tokens.embeddings, embedding


class TextTower(nn.Module):
    """Word pieces to tokens and an embedding.

    Args:
        model: a model with ``encode_text``.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> tuple[Tensor, Tensor]:
        """Ids and mask (B, N), both int64, to tokens (B, N, D) and embeddings (B, d)."""
        tokens, embedding = self.model.encode_text(input_ids, attention_mask.bool())
        return tokens.embeddings, embedding


class Matcher(nn.Module):
    """Tokens of pairs to the logits of 'no' and 'yes'.

    Args:
        model: a model with a fusion encoder and an ITM head.
        grid_size: rows and columns of patches.
    """

    def __init__(self, model: nn.Module, grid_size: tuple[int, int]) -> None:
        super().__init__()
        self.model, self.grid_size = model, grid_size

    def forward(self, image_tokens: Tensor, text_tokens: Tensor, attention_mask: Tensor) -> Tensor:
        """Tokens (B, 1 + M, D), (B, N, D) and mask (B, N) int64, row by row, to logits (B, 2)."""
        image = Tokens(image_tokens, grid_size=self.grid_size)
        text = Tokens(text_tokens, attention_mask.bool())
        fused = self.model.backbone.fuse(image, text, need_image=False)
        return self.model.matching_head(fused.text_tokens).float()


class Part(NamedTuple):
    """A part of a model, and how to call it.

    Attributes:
        module: the part.
        example: inputs by their names, of two rows.
        dynamic: the axes that may have any length, by the name of an input.
        outputs: names of the outputs.
    """

    module: nn.Module
    example: dict[str, Tensor]
    dynamic: dict[str, dict[int, Dim]]
    outputs: list[str]

    def program(self) -> ExportedProgram:
        """The part as a program of ``torch.export``."""
        with torch.no_grad():
            return torch.export.export(
                self.module, (), self.example, dynamic_shapes=self.dynamic, strict=False
            )


@torch.no_grad()
def parts_of(model: nn.Module) -> dict[str, Part]:
    """The parts of a model: ``image``, ``text`` and, with a fusion encoder, ``matcher``.

    Any number of images, texts and pairs goes through them, and texts of any length up to the
    model's longest.

    Args:
        model: a model with image and text embeddings that reads pixels, in eval mode.

    Raises:
        ValueError: for other models, as those of regions, or of questions.
    """
    preprocessor = model.data_preprocessor
    encoder = getattr(getattr(model, 'backbone', model), 'image_encoder', None)
    size = getattr(encoder, 'image_size', None)
    has_towers = hasattr(model, 'encode_image') and hasattr(preprocessor, 'normalize')
    if size is None or not has_towers:
        raise ValueError(
            f'{type(model).__name__} with the image encoder {type(encoder).__name__} cannot be '
            'exported: expected a model with encode_image and encode_text that reads pixels, such '
            'as AlbefPretrainer or EmkumModel with TimmImageEncoder'
        )
    size = (size, size) if isinstance(size, int) else size
    images = torch.zeros(2, 3, *size, dtype=torch.uint8)
    input_ids, mask = preprocessor.tokenize(['a', 'a a a'])
    mask = mask.long()
    rows = {0: Dim('batch')}
    words = {**rows, 1: Dim('words', min=3, max=preprocessor.max_length)}
    parts = {
        'image': Part(
            ImageTower(model),
            {'images': images},
            {'images': rows},
            ['image_tokens', 'image_embedding'],
        ),
        'text': Part(
            TextTower(model),
            {'input_ids': input_ids, 'attention_mask': mask},
            {'input_ids': words, 'attention_mask': words},
            ['text_tokens', 'text_embedding'],
        ),
    }
    if model.matching_head is not None:
        image = model.encode_image(preprocessor.normalize(images)).tokens
        text = model.encode_text(input_ids, mask.bool()).tokens
        tokens = {'image_tokens': image.embeddings, 'text_tokens': text.embeddings}
        parts['matcher'] = Part(
            Matcher(model, image.grid_size),
            {**tokens, 'attention_mask': mask},
            {'image_tokens': rows, 'text_tokens': words, 'attention_mask': words},
            ['logits'],
        )
    return parts

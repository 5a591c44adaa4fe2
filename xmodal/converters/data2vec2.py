"""Weights of data2vec 2.0 as those of the encoders of EMKUM."""

import re
from pathlib import Path
from pickle import UnpicklingError

import torch
from torch import Tensor
from transformers import BertConfig, BertModel

from xmodal.checkpoint_file import read_checkpoint, select_tensors, write_checkpoint
from xmodal.files import FileError, explain_errors, reads
from xmodal.models.backbones import ViTImageEncoder

LAYOUT = 'weights of data2vec 2.0'
_PADDING = 1  # index in the dictionaries of fairseq; the positions of a text start after it
# Names in a block of fairseq and of BERT; timm has the names of fairseq.
_BERT = {
    'attn.proj.': 'attention.output.dense.',
    'norm1.': 'attention.output.LayerNorm.',
    'mlp.fc1.': 'intermediate.dense.',
    'mlp.fc2.': 'output.dense.',
    'norm2.': 'output.LayerNorm.',
}


@reads(LAYOUT)
def read_weights(path: Path) -> dict[str, Tensor]:
    """Reads the tensors of a file.

    Raises:
        ValueError: if the file contains other objects, or no weights of data2vec 2.0.
    """
    try:
        content = read_checkpoint(path)
    except ValueError as error:
        if not isinstance(error.__cause__, UnpicklingError):
            raise
        raise FileError(
            f'{error}\nIf you trust the file, extract its weights first, where fairseq is '
            'installed:\n  python -c '
            f"\"import torch; m = torch.load('{path}', weights_only=False)['model']; "
            "torch.save({'model': {k: v for k, v in m.items() if torch.is_tensor(v)}}, "
            f"'{path.with_suffix('.weights.pt')}')\""
        ) from error
    weights = select_tensors(content, 'model')
    if not any(name.startswith('modality_encoders.') for name in weights):
        raise FileError(
            f"{path} has no 'modality_encoders.…' among its {len(weights)} tensors: is this a file "
            'of data2vec 2.0?'
        )
    return weights


def find_blocks(weights: dict[str, Tensor], encoder: str) -> list[str]:
    """Returns the prefix of the names of each block, in order: those of the prenet come first."""
    prefixes = []
    for part in (f'{encoder}context_encoder.blocks.', 'blocks.'):
        matches = (re.match(rf'{re.escape(part)}(\d+)\.', name) for name in weights)
        indices = sorted({int(match[1]) for match in matches if match})
        prefixes += [f'{part}{index}.' for index in indices]
    return prefixes


class Weights:
    """Tensors that are taken out one by one, so that the unused ones are known at the end.

    Args:
        tensors: all tensors, by name.
    """

    def __init__(self, tensors: dict[str, Tensor]) -> None:
        self.unused = dict(tensors)

    def take(self, name: str) -> Tensor:
        """Takes out a tensor.

        Raises:
            ValueError: if there is none of this name.
        """
        if name not in self.unused:
            raise ValueError(f"the file has no '{name}': is it incomplete, or of another modality?")
        return self.unused.pop(name)

    def take_all(self, prefix: str) -> dict[str, Tensor]:
        """Takes out all tensors with a prefix; the names are without it."""
        names = [name for name in self.unused if name.startswith(prefix)]
        return {name.removeprefix(prefix): self.take(name) for name in names}


def convert_image(weights: Weights) -> dict[str, Tensor]:
    """Renames weights to those of a ViT of timm with ``post_norm``.

    Such a ViT has no bias in its patch embedding; the bias is added to the position embeddings of
    the patches, which is equivalent. In data2vec [CLS] has no position embedding.
    """
    encoder = 'modality_encoders.IMAGE.'
    blocks = find_blocks(weights.unused, encoder)
    positions = weights.take(f'{encoder}fixed_positional_encoder.positions')
    positions = positions + weights.take(f'{encoder}local_encoder.proj.bias')
    renamed = {
        'cls_token': weights.take(f'{encoder}extra_tokens'),
        'pos_embed': torch.cat([torch.zeros_like(positions[:, :1]), positions], 1),
        'patch_embed.proj.weight': weights.take(f'{encoder}local_encoder.proj.weight'),
    }
    for name, value in weights.take_all(f'{encoder}context_encoder.norm.').items():
        renamed[f'norm_pre.{name}'] = value
    for index, prefix in enumerate(blocks):
        for name, value in weights.take_all(prefix).items():
            renamed[f'blocks.{index}.{name}'] = value
    return renamed


def convert_text(weights: Weights) -> dict[str, Tensor]:
    """Renames weights to those of a BERT of transformers."""
    encoder = 'modality_encoders.TEXT.'
    blocks = find_blocks(weights.unused, encoder)
    words = weights.take(f'{encoder}local_encoder.embed_tokens.weight')
    positions = weights.take(f'{encoder}local_encoder.embed_positions.weight')
    renamed = {
        'embeddings.word_embeddings.weight': words,
        'embeddings.position_embeddings.weight': positions[_PADDING + 1 :],
        'embeddings.token_type_embeddings.weight': torch.zeros_like(words[:1]),
    }
    for name, value in weights.take_all(f'{encoder}local_encoder.layernorm_embedding.').items():
        renamed[f'embeddings.LayerNorm.{name}'] = value
    for index, prefix in enumerate(blocks):
        layer = f'encoder.layer.{index}.'
        for name, value in weights.take_all(f'{prefix}attn.qkv.').items():
            for role, part in zip(('query', 'key', 'value'), value.chunk(3), strict=True):
                renamed[f'{layer}attention.self.{role}.{name}'] = part
        for theirs, ours in _BERT.items():
            for name, value in weights.take_all(prefix + theirs).items():
                renamed[f'{layer}{ours}{name}'] = value
    return renamed


def build_image_encoder(renamed: dict[str, Tensor], blocks: int, heads: int) -> ViTImageEncoder:
    """Builds the image encoder of the size of the weights and loads them."""
    width, _, patch, _ = renamed['patch_embed.proj.weight'].shape
    side = int((renamed['pos_embed'].shape[1] - 1) ** 0.5)
    encoder = ViTImageEncoder(
        image_size=side * patch,
        patch_size=patch,
        embed_dim=width,
        num_heads=heads,
        depth=blocks,
        post_norm=True,
    )
    encoder.vit.load_state_dict(renamed)
    return encoder


def build_bert(renamed: dict[str, Tensor], blocks: int, heads: int) -> BertModel:
    """Builds the BERT of the size of the weights and loads them."""
    words, width = renamed['embeddings.word_embeddings.weight'].shape
    config = BertConfig(
        vocab_size=words,
        hidden_size=width,
        num_hidden_layers=blocks,
        num_attention_heads=heads,
        intermediate_size=len(renamed['encoder.layer.0.intermediate.dense.weight']),
        max_position_embeddings=len(renamed['embeddings.position_embeddings.weight']),
        type_vocab_size=1,
        layer_norm_eps=1e-5,
        pad_token_id=_PADDING,
    )
    bert = BertModel(config, add_pooling_layer=False)
    bert.load_state_dict(renamed)
    return bert


def convert_file(path: Path, out: Path, heads: int = 12) -> list[str]:
    """Converts an encoder of data2vec 2.0 to a checkpoint (images) or a folder (texts).

    Args:
        path: a file of fairseq.
        out: the file or the folder to write.
        heads: number of attention heads, 12 in base models.

    Returns:
        Lines of a report.

    Raises:
        FileError: if the file is none of data2vec 2.0.
    """
    tensors = read_weights(path)
    is_image = any(name.startswith('modality_encoders.IMAGE.') for name in tensors)
    encoder = f'modality_encoders.{"IMAGE" if is_image else "TEXT"}.'
    blocks, weights = find_blocks(tensors, encoder), Weights(tensors)
    with explain_errors(path, LAYOUT):
        renamed = convert_image(weights) if is_image else convert_text(weights)
    if is_image:
        model = build_image_encoder(renamed, len(blocks), heads)
        state = {f'image_encoder.{name}': value for name, value in model.state_dict().items()}
        write_checkpoint(out, {'state_dict': state, 'meta': {'source': path.name}})
    else:
        build_bert(renamed, len(blocks), heads).save_pretrained(out)
    used = len(tensors) - len(weights.unused)
    return [
        f'{out}: {used} of {len(tensors)} tensors',
        f'{len(blocks)} blocks, in this order:',
        *(f'  {block}' for block in blocks),
        f'not used: {len(weights.unused)}',
        *(f'  {name}' for name in sorted(weights.unused)),
    ]

"""A tiny CLIP and a tiny SigLIP of transformers, in folders as their users save them."""

import string
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import (
    CLIPConfig,
    CLIPImageProcessor,
    CLIPModel,
    CLIPTokenizer,
    PreTrainedTokenizerFast,
    SiglipConfig,
    SiglipImageProcessor,
    SiglipModel,
)  # fmt: skip

LONGEST, SIDE = 48, 24
CHARACTERS = string.ascii_lowercase + string.digits


def clip_tokenizer():
    """Byte pairs without a merge."""
    names = [*CHARACTERS, *(f'{x}</w>' for x in CHARACTERS), '<|startoftext|>', '<|endoftext|>']
    return CLIPTokenizer(vocab={name: i for i, name in enumerate(names)}, merges=[])


def siglip_tokenizer():
    """Letters, and no mask, as in the released files."""
    vocabulary = {name: i for i, name in enumerate(['<unk>', '</s>', *CHARACTERS])}
    backend = Tokenizer(models.WordLevel(vocabulary, unk_token='<unk>'))
    backend.normalizer = normalizers.Lowercase()
    backend.pre_tokenizer = pre_tokenizers.Split('', 'isolated')
    backend.post_processor = processors.TemplateProcessing(
        single='$A </s>', special_tokens=[('</s>', 1)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, unk_token='<unk>', pad_token='</s>', eos_token='</s>',
        model_input_names=['input_ids'],
    )  # fmt: skip


def save(kind: str, path: Path) -> None:
    """Writes a model with random weights, its image processor and its tokenizer."""
    sizes = dict(
        hidden_size=16, intermediate_size=16, num_hidden_layers=2, num_attention_heads=2,
    )  # fmt: skip
    tokenizer = clip_tokenizer() if kind == 'clip' else siglip_tokenizer()
    text = dict(
        sizes, max_position_embeddings=LONGEST, vocab_size=len(tokenizer), projection_size=16,
        bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    vision = dict(sizes, image_size=SIDE, patch_size=8)
    torch.manual_seed(1)
    if kind == 'clip':
        model = CLIPModel(CLIPConfig(text_config=text, vision_config=vision, projection_dim=8))
        crop = {'height': SIDE, 'width': SIDE}
        images = CLIPImageProcessor(size={'shortest_edge': SIDE + 4}, crop_size=crop)
    else:
        model = SiglipModel(SiglipConfig(text_config=text, vision_config=vision))
        images = SiglipImageProcessor(size={'height': SIDE, 'width': SIDE}, resample=2)
    for weight in model.parameters():
        if weight.ndim > 1:  # initial ones give embeddings that are all alike
            weight.data.normal_(std=0.5)
    model.logit_scale.data.fill_(2.0)
    for part in (model, images, tokenizer):
        part.save_pretrained(path)

"""The papers' models of width 32: the options that make a config tiny, and weights of that size."""

from collections.abc import Iterator
from pathlib import Path

import timm
import torch
from mmengine.config import Config
from tokenizers import ByteLevelBPETokenizer
from transformers import BertConfig, BertForPreTraining

from xmodal.engine.keys import TOP_LEVEL_KEYS
from xmodal.models.backbones import ViTImageEncoder

WIDTH = 32
BERT = dict(hidden_size=WIDTH, num_attention_heads=2, intermediate_size=4 * WIDTH)
VIT = dict(patch_size=32, embed_dim=WIDTH, num_heads=2, depth=1)
BLOCKS = dict(embed_dims=WIDTH, num_heads=2, depth=1)
SIZES = {
    'ViTImageEncoder': VIT,
    'TimmTeacher': dict(embed_dim=WIDTH, num_heads=2, depth=1),
    'BertTextEncoder': dict(num_layers=1),
    'ObjectEncoder': BLOCKS,
    'FusionEncoder': BLOCKS,
    'CrossModalityEncoder': BLOCKS,
    'RegionEncoder': dict(embed_dims=WIDTH),
    'GruTextEncoder': dict(embed_dims=WIDTH),
    'SGRAFSimilarity': dict(dim=WIDTH),
}


def tiny_options(config: Config) -> dict[str, object]:
    """Changes, by dotted key, for three steps of a tiny model with all its heads.

    Files, sizes of images, scorers and metrics stay.
    """
    options = {'train_cfg.max_epochs': 1}
    options |= {'train_dataloader.global_batch_size': 4, 'train_dataloader.num_batch_per_epoch': 3}
    for path, section in sections(config):
        if 'collate_fn' in section and path.partition('.')[0] in TOP_LEVEL_KEYS:
            options |= {f'{path}.num_workers': 0, f'{path}.persistent_workers': False}
    for path, section in sections(config.model, 'model'):
        sizes = dict(SIZES.get(section.get('type'), {}))
        if section.get('type') == 'BertTextEncoder' and section.get('config') is None:
            sizes['config'] = 'bert-base-uncased'
        if section.get('pretrained') is True:  # timm's weights, which are of one size
            sizes['pretrained'] = False
        options |= {f'{path}.{key}': value for key, value in sizes.items()}
    if 'queue_length' in config.model:
        options['model.queue_length'] = 16
    if 'shared_block' in config.model:
        options['model.shared_block.num_heads'] = 2
    for index, hook in enumerate(config.get('custom_hooks', [])):
        for head in hook.get('epochs', ()) if hook.type == 'DelayedHeadsHook' else ():
            options[f'custom_hooks.{index}.epochs.{head}'] = 0
    return options


def sections(section: dict, path: str = '') -> Iterator[tuple[str, dict]]:
    """The dicts in a dict, and itself, with their dotted keys."""
    yield path, section
    for key, value in section.items():
        if isinstance(value, dict):
            yield from sections(value, f'{path}.{key}'.lstrip('.'))


def write_weights(folder: Path, words: Path) -> None:
    """Random weights and small vocabularies, by the names by which the configs ask for them.

    Args:
        folder: where the configs are used; hub names are folders in it.
        words: a vocabulary of BERT's form.
    """
    vocabulary = words.read_text().splitlines()
    bert = BertForPreTraining(BertConfig(vocab_size=len(vocabulary), **BERT))
    bert.save_pretrained(folder / 'bert-base-uncased')
    (folder / 'bert-base-uncased/vocab.txt').symlink_to(words)

    byte_pairs = ByteLevelBPETokenizer()
    special = ['<s>', '<pad>', '</s>', '<unk>', '<mask>']
    byte_pairs.train_from_iterator(vocabulary, vocab_size=300, special_tokens=special)
    (folder / 'roberta-base').mkdir()
    byte_pairs.save_model(str(folder / 'roberta-base'))

    # As tools/model_converters/data2vec2.py writes them, and as BEiT-2's are published.
    data = folder / 'data'
    bert = BertForPreTraining(
        BertConfig(vocab_size=byte_pairs.get_vocab_size(), pad_token_id=1, **BERT)
    ).bert
    bert.save_pretrained(data / 'data2vec2/text')
    encoder = ViTImageEncoder(image_size=224, post_norm=True, **VIT)
    weights = {f'image_encoder.{name}': value for name, value in encoder.state_dict().items()}
    torch.save({'state_dict': weights}, data / 'data2vec2/image.pth')
    teacher = timm.create_model(
        'beitv2_base_patch16_224',
        global_pool='token',
        use_rel_pos_bias=False,
        use_shared_rel_pos_bias=True,
        **SIZES['TimmTeacher'],
    )
    torch.save(teacher.state_dict(), data / 'beitv2_base_patch16_224_pt1k.pth')

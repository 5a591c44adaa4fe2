"""Weights of ALBEF, against a literal implementation with transformers and timm."""

import sys

import pytest
import timm
import torch
from mmengine.config import Config
from torch import nn
from transformers import BertConfig, BertModel
from transformers.models.bert.modeling_bert import BertLayer

from tools.model_converters import albef
from xmodal.registry import MODELS

WIDTH, WORDS = 16, 40


class TinyAlbef(nn.Module):
    """A literal ALBEF: twelve BERT layers, the last six with cross-attention to the image."""

    def __init__(self):
        super().__init__()
        config = BertConfig(
            vocab_size=WORDS,
            hidden_size=WIDTH,
            num_attention_heads=2,
            intermediate_size=4 * WIDTH,
            num_hidden_layers=6,
            max_position_embeddings=8,
            attn_implementation='eager',
        )
        crossing = BertConfig(**config.to_dict())
        crossing.is_decoder, crossing.add_cross_attention = True, True
        crossing._attn_implementation = 'eager'
        self.visual_encoder = timm.create_model(
            'vit_base_patch16_224',
            img_size=24,
            patch_size=8,
            embed_dim=WIDTH,
            num_heads=2,
            depth=3,
            num_classes=0,
            global_pool='',
        )
        self.bert = BertModel(config, add_pooling_layer=False)
        self.fusion = nn.ModuleList(BertLayer(crossing, layer_idx=i) for i in range(6))
        self.vision_proj, self.text_proj = nn.Linear(WIDTH, 8), nn.Linear(WIDTH, 8)
        self.itm_head = nn.Linear(WIDTH, 2)

    def albef_state_dict(self):
        """Returns the weights with the names of ALBEF.pth."""
        renamed = {'temp': torch.tensor(0.05), 'text_queue': torch.zeros(8, 4)}
        for name, value in self.state_dict().items():
            if name.startswith('fusion.'):
                _, layer, rest = name.split('.', 2)
                name = f'text_encoder.bert.encoder.layer.{int(layer) + 6}.{rest}'
            elif name.startswith('bert.'):
                name = f'text_encoder.{name}'
            renamed[name] = value
        return renamed

    def forward(self, images, input_ids, mask):
        image = self.visual_encoder.forward_features(images)
        text = self.bert(input_ids=input_ids, attention_mask=mask).last_hidden_state
        padding = torch.zeros(mask.shape).masked_fill(mask == 0, torch.finfo(torch.float32).min)
        fused = text
        for layer in self.fusion:
            fused = layer(fused, padding[:, None, None], image)
        return (
            nn.functional.normalize(self.vision_proj(image[:, 0]), dim=-1),
            nn.functional.normalize(self.text_proj(text[:, 0]), dim=-1),
            self.itm_head(fused[:, 0]),
        )


@pytest.fixture
def source():
    torch.manual_seed(0)
    model = TinyAlbef().eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.2)
    return model


@pytest.fixture
def config_file(tmp_path):
    """The model of the preset at the tiny size."""
    vocabulary = tmp_path / 'vocab.txt'
    words = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]', *(f'word{i}' for i in range(35))]
    vocabulary.write_text('\n'.join(words))
    config = Config.fromfile('configs/acerpe/albef_4m.py')
    model = config.model
    model.data_preprocessor.tokenizer.pretrained = str(vocabulary)
    model.backbone.image_encoder.update(
        arch='vit_base_patch16_224',
        image_size=24,
        patch_size=8,
        embed_dim=WIDTH,
        num_heads=2,
        depth=3,
        pretrained=False,
    )
    model.backbone.text_encoder.update(
        pretrained=None,
        config=dict(
            vocab_size=WORDS,
            hidden_size=WIDTH,
            num_attention_heads=2,
            intermediate_size=4 * WIDTH,
            max_position_embeddings=8,
        ),
    )
    model.backbone.fusion.update(embed_dims=WIDTH, num_heads=2)
    model.backbone.proj_dims = 8
    model.queue_length = 4
    path = tmp_path / 'albef_tiny.py'
    Config(dict(model=model)).dump(path)
    return path


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, 'argv', ['albef.py', *map(str, arguments)])
    albef.main()


@torch.no_grad()
@pytest.mark.parametrize('wrapped', [True, False])
def test_converted_weights_compute_what_albef_computes(
    source, config_file, tmp_path, monkeypatch, capsys, wrapped
):
    weights = source.albef_state_dict()
    if not wrapped:  # the fine-tuned files: no 'bert.'
        weights = {name.replace('bert.', ''): value for name, value in weights.items()}
    torch.save({'model': weights} if wrapped else weights, tmp_path / 'ALBEF.pth')
    out = tmp_path / 'new' / 'out.pth'
    run(monkeypatch, tmp_path / 'ALBEF.pth', out, '--config', config_file)
    report = capsys.readouterr().out
    assert 'not used, no such name in the model: 1\n  text_queue' in report

    model = MODELS.build(Config.fromfile(config_file).model).eval()
    checkpoint = torch.load(out, weights_only=True)
    keys = model.load_state_dict(checkpoint['state_dict'], strict=False)
    assert not keys.unexpected_keys
    # The tiny ALBEF has no weights for these; the teacher was copied.
    assert all(
        name.startswith(('queue.', 'heads.mlm', 'teacher.module.mlm')) for name in keys.missing_keys
    )
    images, input_ids = torch.randn(3, 3, 24, 24), torch.randint(5, WORDS, (3, 6))
    mask = torch.tensor([[1] * 6, [1] * 4 + [0] * 2, [1] * 5 + [0]])
    expected = source(images, input_ids, mask)
    image, text = model.encode_image(images), model.encode_text(input_ids, mask.bool())
    fused = model.fuse(image.tokens, text.tokens)
    actual = image.embedding, text.embedding, model.heads['itm'](fused.text_tokens)
    for ours, theirs in zip(actual, expected, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-4)
    assert model.heads['itc'].temperature().item() == pytest.approx(0.05)
    teacher = model.teacher.module['backbone'].image_proj.weight
    assert torch.equal(teacher, model.backbone.image_proj.weight)


def test_chosen_blocks_are_renumbered_in_order():
    assert albef.rename('visual_encoder.blocks.4.norm1.weight', [0, 2, 4]) == (
        'backbone.image_encoder.vit.blocks.2.norm1.weight'
    )
    assert albef.rename('visual_encoder.blocks.3.norm1.weight', [0, 2, 4]) is None


def test_a_file_of_another_model_is_an_error(config_file, tmp_path, monkeypatch):
    torch.save({'conv.weight': torch.zeros(1)}, tmp_path / 'other.pth')
    with pytest.raises(ValueError, match='is this a file of ALBEF'):
        run(monkeypatch, tmp_path / 'other.pth', tmp_path / 'out.pth', '--config', config_file)
    assert not (tmp_path / 'out.pth').exists()


def test_an_existing_file_is_not_overwritten(config_file, tmp_path, monkeypatch):
    (tmp_path / 'out.pth').write_text('mine')
    with pytest.raises(FileExistsError, match='out=.* already exists'):
        run(monkeypatch, 'any.pth', tmp_path / 'out.pth', '--config', config_file)

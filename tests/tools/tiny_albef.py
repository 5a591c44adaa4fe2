"""A literal, tiny ALBEF with transformers and timm, and configs of its size."""

import timm
import torch
from mmengine.config import Config
from torch import nn
from transformers import BertConfig, BertLMHeadModel, BertModel
from transformers.models.bert.modeling_bert import BertLayer

WIDTH, WORDS = 16, 40
BERT = dict(
    vocab_size=WORDS,
    hidden_size=WIDTH,
    num_attention_heads=2,
    intermediate_size=4 * WIDTH,
    max_position_embeddings=8,
)


def crossing_bert():
    """The config of layers with cross-attention."""
    config = BertConfig(**BERT, num_hidden_layers=6, is_decoder=True, add_cross_attention=True)
    config._attn_implementation = 'eager'
    return config


class TinyAlbef(nn.Module):
    """Six BERT layers, then those with cross-attention: six, or twelve for two images in turn."""

    def __init__(self, num_images=1, num_classes=None, has_decoder=False):
        super().__init__()
        config = BertConfig(**BERT, num_hidden_layers=6, attn_implementation='eager')
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
        self.fusion = nn.ModuleList(
            BertLayer(crossing_bert(), layer_idx=i) for i in range(6 * num_images)
        )
        if num_classes is None and not has_decoder:
            self.vision_proj, self.text_proj = nn.Linear(WIDTH, 8), nn.Linear(WIDTH, 8)
            self.itm_head = nn.Linear(WIDTH, 2)
        if num_classes is not None:
            self.cls_head = nn.Sequential(
                nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, num_classes)
            )
        if has_decoder:
            self.text_decoder = BertLMHeadModel(crossing_bert())
        for parameter in self.parameters():
            nn.init.normal_(parameter, std=0.2)
        for first, second in zip(self.fusion[::2], self.fusion[1::2], strict=True):
            if num_images == 2:  # share_cross_attention of models/model_nlvr.py
                for name in ('key', 'value'):
                    shared = second.crossattention.self.get_submodule(name)
                    setattr(first.crossattention.self, name, shared)

    def albef_state_dict(self):
        """The weights with the names of ALBEF.pth."""
        renamed = {}
        for name, value in self.state_dict().items():
            if name.startswith('fusion.'):
                _, layer, rest = name.split('.', 2)
                name = f'text_encoder.bert.encoder.layer.{int(layer) + 6}.{rest}'
            elif name.startswith('bert.'):
                name = f'text_encoder.{name}'
            renamed[name] = value
        return renamed

    def fine_tuned_state_dict(self):
        """The weights with the names of a fine-tuned file: only the decoder keeps 'bert.'."""
        return {
            name.replace('text_encoder.bert.', 'text_encoder.'): value
            for name, value in self.albef_state_dict().items()
        }

    def encode_image(self, images):
        return self.visual_encoder.forward_features(images)

    def encode_text(self, input_ids, mask):
        return self.bert(input_ids=input_ids, attention_mask=mask).last_hidden_state

    def fuse(self, images, input_ids, mask):
        """The words after all layers; each layer looks at the next of a list of images."""
        embeddings = [self.encode_image(image) for image in images]
        words = self.encode_text(input_ids, mask)
        padding = torch.zeros(mask.shape).masked_fill(mask == 0, torch.finfo(torch.float32).min)
        for index, layer in enumerate(self.fusion):
            words = layer(words, padding[:, None, None], embeddings[index % len(images)])
        return words

    def forward(self, images, input_ids, mask):
        image, text = self.encode_image(images), self.encode_text(input_ids, mask)
        return (
            nn.functional.normalize(self.vision_proj(image[:, 0]), dim=-1),
            nn.functional.normalize(self.text_proj(text[:, 0]), dim=-1),
            self.itm_head(self.fuse([images], input_ids, mask)[:, 0]),
        )


def write_config(name, folder):
    """The model of a config at the tiny size, as a config file."""
    vocabulary = folder / 'vocab.txt'
    words = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]', *(f'word{i}' for i in range(35))]
    vocabulary.write_text('\n'.join(words))
    model = Config.fromfile(f'configs/acerpe/{name}.py').model
    model.data_preprocessor.tokenizer.pretrained = str(vocabulary)
    model.data_preprocessor.max_length = 8
    model.backbone.image_encoder.update(
        arch='vit_base_patch16_224',
        image_size=24,
        patch_size=8,
        embed_dim=WIDTH,
        num_heads=2,
        depth=3,
        pretrained=False,
    )
    model.backbone.text_encoder.update(pretrained=None, config=BERT)
    model.backbone.fusion.update(embed_dims=WIDTH, num_heads=2)
    model.backbone.proj_dims = 8
    if 'queue_length' in model:
        model.queue_length = 4
    if 'answer_list' in model:
        model.update(answer_list=None, max_answer_length=BERT['max_position_embeddings'] - 1)
    path = folder / f'{name}_tiny.py'
    Config(dict(model=model)).dump(path)
    return path

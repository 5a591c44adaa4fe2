"""A tiny LXMERT with random weights, and batches for it."""

import json

import pytest
import torch

from xmodal.registry import MODELS
from xmodal.structures import DataSample, ImageTextBatch, ObjectLabels, Regions

WIDTH, FEATURES, OBJECTS, ATTRIBUTES, WORDS = 32, 12, 9, 4, 7
ANSWERS = ['yes', 'no', 'red', 'blue', '2']
POSITIONS = {'AnchorRelativePosition': dict(type='AnchorRelativePosition', groups=4)}


@pytest.fixture
def answer_list(tmp_path):
    """A file of five answers."""
    file = tmp_path / 'answers.json'
    file.write_text(json.dumps(ANSWERS))
    return str(file)


@pytest.fixture
def backbone():
    """Makes the arguments of a tiny backbone."""

    def make(position='NoPosition', dropout=0.0, depth=2, **fusion):
        return dict(
            image_encoder=dict(
                type='ObjectEncoder',
                feature_dims=FEATURES,
                embed_dims=WIDTH,
                depth=depth,
                num_heads=2,
                dropout=dropout,
            ),
            text_encoder=dict(
                type='BertTextEncoder',
                config=dict(
                    vocab_size=40,
                    hidden_size=WIDTH,
                    num_attention_heads=2,
                    intermediate_size=4 * WIDTH,
                    max_position_embeddings=8,
                    hidden_dropout_prob=dropout,
                    attention_probs_dropout_prob=dropout,
                ),
                num_layers=depth,
            ),
            fusion=dict(
                type='CrossModalityEncoder',
                depth=depth,
                embed_dims=WIDTH,
                num_heads=2,
                dropout=dropout,
                **fusion,
            ),
            position=POSITIONS.get(position) or dict(type=position),
        )

    return make


@pytest.fixture
def heads(answer_list):
    """Makes the heads of a pre-training, by name."""
    configs_by_name = dict(
        mlm=dict(type='LxmertMLMHead', mask_probability=0.5),
        objects=dict(
            type='ObjectHead', num_objects=OBJECTS, num_attributes=ATTRIBUTES, mask_probability=0.5
        ),
        matching=dict(type='LxmertITMHead'),
        answers=dict(type='AnswerTableHead', answer_list=answer_list),
    )

    def make(names=tuple(configs_by_name), **objects):
        configs = {name: dict(configs_by_name[name]) for name in names}
        if 'objects' in configs:
            configs['objects'].update(objects)
        return configs

    return make


@pytest.fixture
def preprocessor(vocabulary):
    return dict(type='RegionTextPreprocessor', tokenizer=dict(pretrained=vocabulary), max_length=8)


@pytest.fixture
def build_pretrainer(backbone, heads, preprocessor):
    """Builds a tiny pre-trainer."""

    def make(
        names=('mlm', 'objects', 'matching', 'answers'), position='NoPosition', depth=2, **objects
    ):
        return MODELS.build(
            dict(
                type='LxmertPretrainer',
                data_preprocessor=preprocessor,
                backbone=backbone(position, depth=depth),
                heads=heads(names, **objects),
            )
        )

    return make


@pytest.fixture
def build(backbone, preprocessor):
    """Builds a tiny fine-tuning model."""

    def make(kind, head, **model):
        return MODELS.build(
            dict(type=kind, data_preprocessor=preprocessor, backbone=backbone(), head=head, **model)
        )

    return make


def make_regions(images, regions=5, labels=True):
    boxes = torch.rand(images, regions, 4).sort(-1).values[..., [0, 1, 2, 3]]
    return Regions(
        torch.randn(images, regions, FEATURES),
        torch.ones(images, regions, dtype=torch.bool),
        boxes,
        ObjectLabels(
            torch.randint(OBJECTS, (images, regions)),
            torch.rand(images, regions),
            torch.randint(ATTRIBUTES, (images, regions)),
            torch.rand(images, regions),
        )
        if labels
        else None,
    )


@pytest.fixture
def regions():
    """Makes random regions of images, none of them padding."""
    return make_regions


@pytest.fixture
def region_batch():
    """Makes a batch of regions and texts; ids default to all different."""

    def make(size=4, regions=5, images_per_text=1, lengths=None, image_ids=None):
        lengths = torch.tensor(lengths or [WORDS - i % 3 for i in range(size)])
        mask = torch.arange(WORDS)[None] < lengths[:, None]
        input_ids = torch.randint(5, 40, (size, WORDS))
        input_ids[:, 0] = 2
        input_ids[torch.arange(size), lengths - 1] = 3
        ids = torch.tensor(image_ids or list(range(size)))
        return ImageTextBatch(
            make_regions(size * images_per_text, regions),
            input_ids.masked_fill(~mask, 0),
            mask,
            ids,
            torch.arange(size) + 100,
            ids,
        )

    return make


@pytest.fixture
def questions():
    """Makes samples with answers and their weights; none for a text that is no question."""

    def make(*answers):
        samples = []
        for weights in answers:
            weights = weights or {}
            weights = weights if isinstance(weights, dict) else {weights: 1.0}
            sample = DataSample()
            sample.answers, sample.answer_weights = list(weights), list(weights.values())
            samples.append(sample)
        return samples

    return make

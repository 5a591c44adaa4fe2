"""The tasks on a few photographs, from their configs; made-up images in the same files."""

import json

import cv2
import numpy as np
import pytest
from mmengine.config import Config
from runs import train

from xmodal.engine.launch import build_runner

WIDTH = 32
IMAGES = [f'{index}.jpg' for index in range(4)]


def lines(*items):
    return '\n'.join(map(json.dumps, items))


def captions(split):
    return [
        {'image': f'flickr8k/images/{name}', 'caption': ['a red disc', split]} for name in IMAGES
    ]


def pairs():
    labels = ['entailment', 'neutral', 'contradiction', 'neutral']
    return lines(
        *(
            dict(image=image, Flickr30K_ID=image[0], sentence2='a blue disc', gold_label=label)
            for image, label in zip(IMAGES, labels, strict=True)
        )
    )


def statement():
    return lines(dict(identifier='3-0', sentence='There is a red disc.', label='true'))


def questions(first):
    asked = [
        dict(question_id=first + index, image_id=index, question='what colour is the disc')
        for index in range(4)
    ]
    answers = [dict(answer='red')] * 7 + [dict(answer='blue')] * 3
    annotated = [
        dict(item, answers=answers, answer_type='other', question_type='what') for item in asked
    ]
    return dict(questions=asked), dict(annotations=annotated)


def phrases():
    return [
        dict(image=IMAGES[0], phrase=phrase, box_xyxy=box, width=60, height=40, f8k_split='dev')
        for phrase, box in (('a red disc', [1, 1, 20, 20]), ('a blue bar', [31, 1, 60, 40]))
    ]


@pytest.fixture
def photographs(tmp_path):
    """A folder in the layout of docs/data.md, with noise for images."""
    root = tmp_path / 'data'

    def write(name, content):
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content))

    def paint(name, height, width):
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        noise = np.random.default_rng(0).integers(0, 256, (height, width, 3), np.uint8)
        cv2.imwrite(str(file), noise)

    for index, name in enumerate(IMAGES):
        paint(f'flickr8k/images/{name}', 50, 50)
        paint(f'coco_mini/images/{index:012d}.jpg', 40, 50)
    for split in ('train', 'dev'):
        write(f'flickr8k/albef/{split}.json', captions(split))
        write(f'flickr8k/snli_ve_mini/{split}.jsonl', pairs())
    write('flickr8k/entities_mini.json', phrases())
    for split in ('hidden', 'dev'):
        write(f'nlvr1/{split}.json', statement())
        for order in range(6):
            paint(f'nlvr1/{split}/{split}-3-0-{order}.png', 100, 400)
    for part, first in (('train', 0), ('test', 100)):
        for kind, content in zip(('questions', 'annotations'), questions(first), strict=True):
            write(f'coco_mini/vqa_v2_mini/{kind}_{part}.json', content)
    write('coco_mini/vqa_v2_mini/answer_list.json', ['red', 'blue'])
    return root


@pytest.fixture
def load(photographs, tiny_world, tmp_path):
    """Loads a config with a model of 32 dimensions and those images."""

    def make(name):
        config = Config.fromfile(f'configs/acerpe/{name}.py')
        backbone = config.model.backbone
        backbone.image_encoder.update(embed_dim=WIDTH, num_heads=2, depth=1)
        assert not backbone.text_encoder.get('pretrained'), 'the checkpoint has these weights'
        backbone.text_encoder.update(
            config=dict(
                vocab_size=128, hidden_size=WIDTH, num_attention_heads=2, intermediate_size=WIDTH
            ),
            num_layers=1,
        )
        backbone.fusion.update(embed_dims=WIDTH, num_heads=2, depth=1)
        config.model.data_preprocessor.tokenizer.pretrained = str(tiny_world / 'vocab.txt')
        if 'answer_list' in config.model:
            answers = photographs / config.model.answer_list.removeprefix('data/')
            config.model.answer_list = str(answers)
        loaders = [config[key] for key in ('train_dataloader', 'test_dataloader') if key in config]
        for loader in loaders:
            below = loader.dataset.data_root.removeprefix('data/')
            loader.dataset.data_root = str(photographs / below)
            loader.update(num_workers=0, persistent_workers=False)
        if 'train_dataloader' in config:
            config.train_dataloader.global_batch_size = 2
            config.train_cfg.max_epochs = 1
        config.load_from = None
        config.work_dir = str(tmp_path / 'run')
        config.experiment_name = name
        return config

    return make


@pytest.mark.parametrize(
    ('name', 'metric'),
    [
        ('retrieval_flickr8k', 'mean_recall'),
        ('snli_ve_flickr8k', 'accuracy'),
        ('nlvr1', 'consistency'),
        ('nlvr1_two_images', 'consistency'),
        ('vqa_coco_mini', 'vqa/overall'),
    ],
)
def test_each_task_trains_and_tests_on_files_of_the_documented_layout(load, name, metric):
    config = load(name)
    assert Config.fromfile(f'configs/acerpe/{name}.py').load_from
    metrics = train(config).test()
    assert 0 <= metrics[metric] <= 100


def test_the_model_of_retrieval_is_tested_on_phrases(load):
    retrieval, grounding = (load(f'{task}_flickr8k') for task in ('retrieval', 'grounding'))
    assert retrieval.model.to_dict() == grounding.model.to_dict()
    metrics = build_runner(grounding).test()
    assert metrics['dev/chance'] == 50.0
    assert set(metrics) == {'dev/accuracy', 'dev/pointing', 'dev/chance'}

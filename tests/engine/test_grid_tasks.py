"""The tasks on grid features of photographs, from their configs; made-up features."""

import json
import pickle
import shutil

import numpy as np
import pytest
import timm
import torch
from mmengine.config import Config
from runs import train

from tools.dataset_converters import lxmert_pretrain
from xmodal.datasets.detected_image import DetectedImage
from xmodal.datasets.region_writer import RegionStoreWriter
from xmodal.engine.launch import build_runner

WIDTH, FEATURES, SIDE = 32, 256, 3
NAMES = [f'{index:012d}' for index in range(6)]
IDS = {'flickr8k': [f'photo_{index}' for index in range(6)], 'coco_mini': NAMES}


def write(file, content):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content))


@pytest.fixture
def data(tmp_path):
    """A folder in the layout of docs/data.md, with random features of six photographs."""
    root = tmp_path / 'data'
    rng = np.random.default_rng(0)
    edges = np.arange(SIDE) * 60 / SIDE
    top, left = (x.ravel() for x in np.meshgrid(edges, edges, indexing='ij'))
    boxes = np.stack([left, top, left + 60 / SIDE, top + 60 / SIDE], 1).astype(np.float32)
    for folder, ids in IDS.items():
        (root / folder / 'images').mkdir(parents=True)
        for store in ('lite0', 'lite0_lite2'):
            with RegionStoreWriter(root / folder / store, 'made up') as writer:
                for name in ids:
                    features = rng.normal(size=(SIDE**2, FEATURES)).astype(np.float32)
                    writer.append(DetectedImage(name, 60, 60, features, boxes, None))
                writer.finish()
        for name in ids:
            (root / folder / f'images/{name}.jpg').touch()
    vqa = root / 'coco_mini/vqa_v2_mini'
    for part, images in (('train', range(4)), ('test', range(4, 6))):
        asked = [
            dict(question_id=index, image_id=index, question='what colour is the disc')
            for index in images
        ]
        answers = [dict(answer='red')] * 7 + [dict(answer='blue')] * 3
        annotated = [dict(item, answers=answers, answer_type='other') for item in asked]
        write(vqa / f'questions_{part}.json', dict(questions=asked))
        write(vqa / f'annotations_{part}.json', dict(annotations=annotated))
    write(vqa / 'all_answers.json', ['red', 'blue'])
    for folder, ids in IDS.items():
        records = [
            {'image': f'{folder}/images/{name}.jpg', 'caption': ['a red disc', 'a blue bar']}
            for name in ids
        ]
        write(root / folder / 'albef/train.json', records)
    questions = dict(caption_questions=['what color is the disc?'])
    labels = dict(caption_questions=[dict(red=1.0)])
    write(
        root / 'coco_mini/caption_questions.json',
        [dict(img_id=name, sentf=questions, labelf=labels) for name in NAMES],
    )
    box = dict(image='photo_0.jpg', width=60, height=60, f8k_split='dev')
    phrases = [('a red disc', [1, 1, 20, 20]), ('a blue bar', [31, 1, 60, 40])]
    write(
        root / 'flickr8k/entities_mini.json',
        [dict(box, phrase=phrase, box_xyxy=corners) for phrase, corners in phrases],
    )
    return root


@pytest.fixture
def load(data, tiny_world, tmp_path):
    """Loads a config with a small model and those files."""

    def make(name):
        content = json.dumps(Config.fromfile(f'configs/{name}.py').to_dict())
        config = Config(json.loads(content.replace('data/', f'{data}/')))
        backbone = config.model.backbone
        small = dict(num_heads=2, depth=1, feedforward_dims=WIDTH, embed_dims=WIDTH)
        backbone.fusion.update(small)
        backbone.image_encoder.feature_dims = FEATURES
        if backbone.image_encoder.type == 'ObjectEncoder':
            backbone.image_encoder.update(small)
        backbone.text_encoder.update(
            pretrained=None,
            num_layers=1,
            config=dict(
                vocab_size=128, hidden_size=WIDTH, num_attention_heads=2, intermediate_size=WIDTH
            ),
        )
        config.model.data_preprocessor.tokenizer.pretrained = str(tiny_world / 'vocab.txt')
        for key in ('train_dataloader', 'test_dataloader'):
            if key in config:
                config[key].update(num_workers=0, persistent_workers=False)
        if 'train_dataloader' in config:
            config.train_dataloader.global_batch_size = 2
            config.train_cfg.max_epochs = 1
        config.load_from = None
        config.work_dir = str(tmp_path / 'runs' / name)
        config.experiment_name = name
        return config

    return make


def convert(data, monkeypatch, *options):
    """Writes LXMERT's pre-training file."""
    vqa = data / 'coco_mini/vqa_v2_mini'
    monkeypatch.setattr(
        'sys.argv',
        [
            'lxmert_pretrain', str(data / 'coco_mini/albef/train.json'),
            '--questions', str(vqa / 'questions_train.json'), '--image-name', '{:012d}',
            *map(str, options), '--out', str(data / 'coco_mini/lxmert.json'),
        ],
    )  # fmt: skip
    lxmert_pretrain.main()
    return json.loads((data / 'coco_mini/lxmert.json').read_text())


def test_the_pre_training_file_has_captions_and_questions(data, monkeypatch):
    annotations = '--annotations', data / 'coco_mini/vqa_v2_mini/annotations_train.json'
    images = convert(data, monkeypatch, *annotations)
    assert [image['img_id'] for image in images] == NAMES
    assert images[5] == dict(
        img_id=NAMES[5], sentf=dict(captions=['a red disc', 'a blue bar']), labelf={}
    )
    for image in images[:4]:
        assert image['sentf'] == dict(
            captions=['a red disc', 'a blue bar'], vqa=['what colour is the disc']
        )
        assert image['labelf'] == dict(vqa=[dict(red=1.0, blue=pytest.approx(0.9))])
    with pytest.raises(FileExistsError, match='already exists'):
        convert(data, monkeypatch, *annotations)


def test_questions_without_annotations_are_an_error(data, monkeypatch):
    vqa = data / 'coco_mini/vqa_v2_mini'
    with pytest.raises(ValueError, match='annotations_test.json has no annotation of question 0'):
        convert(data, monkeypatch, '--annotations', vqa / 'annotations_test.json')
    with pytest.raises(SystemExit):
        convert(data, monkeypatch)


def test_lxmert_pre_trains_with_all_tasks_and_answers_questions(data, load, monkeypatch, tmp_path):
    vqa = data / 'coco_mini/vqa_v2_mini'
    convert(data, monkeypatch, '--annotations', vqa / 'annotations_train.json')
    weights = tmp_path / 'weights.pth'
    torch.save(timm.create_model('test_efficientnet').state_dict(), weights)
    config = load('lxmert/pretrain_photographs_grid')
    config.model.heads.objects.classifier.update(
        arch='test_efficientnet', image_size=64, pretrained=str(weights)
    )
    config.default_hooks.logger.interval = 1
    config.train_dataloader.global_batch_size = 8
    runner = train(config)
    logged = runner.message_hub.log_scalars
    for name in ('mlm', 'features', 'objects', 'matching', 'answers'):
        values = logged[f'train/loss_{name}'].data[0]
        assert np.isfinite(values).all() and values.any(), name
    config = load('lxmert/vqa_coco_mini_grid')
    config.load_from = str(tmp_path / 'runs/lxmert/pretrain_photographs_grid/epoch_1.pth')
    tuned = train(config)
    assert 0 <= tuned.test()['vqa/overall'] <= 100


def test_each_task_starts_from_the_model_of_the_one_before():
    for task, stage in (
        ('acerpe/vqa_coco_mini_grid', 'acerpe/pretrain_flickr8k_grid'),
        ('acerpe/grounding_flickr8k_grid', 'acerpe/retrieval_flickr8k_grid'),
        ('acerpe/grounding_refcoco_plus_grid', 'acerpe/retrieval_flickr8k_grid'),
        ('lxmert/vqa_coco_mini_grid', 'lxmert/pretrain_photographs_grid'),
    ):
        config, before = (Config.fromfile(f'configs/{name}.py') for name in (task, stage))
        assert stage.rpartition('/')[2] in (config.load_from or stage)
        assert config.model.data_preprocessor == before.model.data_preprocessor
        for part in ('image_encoder', 'text_encoder', 'fusion'):
            assert config.model.backbone[part] == before.model.backbone[part]


def test_questions_are_answered_from_a_table(load):
    config = load('acerpe/vqa_coco_mini_grid')
    assert 0 <= train(config).test()['vqa/overall'] <= 100


def test_the_model_of_retrieval_is_tested_on_phrases(load):
    config = load('acerpe/grounding_flickr8k_grid')
    metrics = build_runner(config).test()
    assert metrics['dev/chance'] == 50.0
    assert set(metrics) == {'dev/accuracy', 'dev/pointing', 'dev/chance'}


def test_the_model_of_retrieval_is_tested_on_refcoco_plus(data, load):
    shutil.copytree(data / 'coco_mini/lite0_lite2', data / 'coco/lite0_lite2')
    (data / 'coco/train2014').mkdir()
    splits = ('val', 'testA', 'testB')
    references, images, boxes = [], [], []
    for index, (split, name) in enumerate(zip(splits, NAMES, strict=False)):
        (data / f'coco/train2014/{name}.jpg').touch()
        images.append(dict(id=index, file_name=f'{name}.jpg', height=60, width=60))
        boxes.append(dict(id=index, image_id=index, bbox=[0.0, 0.0, 20.0, 20.0]))
        sentences = [dict(sent='a red disc', sent_id=index)]
        references.append(
            dict(ref_id=index, ann_id=index, image_id=index, split=split, sentences=sentences)
        )
    write(data / 'refcoco+/instances.json', dict(images=images, annotations=boxes))
    (data / 'refcoco+/refs(unc).p').write_bytes(pickle.dumps(references))
    right, wrong = [0.0, 0.0, 20.0, 20.0], [40.0, 40.0, 20.0, 20.0]
    write(data / 'refcoco+/dets.json', {str(index): [right, wrong] for index in range(3)})
    metrics = build_runner(load('acerpe/grounding_refcoco_plus_grid')).test()
    assert [metrics[f'{split}/chance'] for split in splits] == [50.0] * 3

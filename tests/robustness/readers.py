"""A small right file of every reader, with the kinds of its fields."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np
from wrong_values import (
    CHOICE,
    FLAG,
    ID,
    IMAGE,
    INTEGER,
    KNOWN,
    LENGTH,
    LIST,
    NAME,
    NUMBER,
    OBJECT,
    OPTIONAL_ID,
    OPTIONAL_TEXT,
    RECORD,
    SCORE,
    SIZE,
    TEST_IMAGE,
    TEXT,
    TEXTS,
    UNIQUE,
    UNIQUE_ID,
    to_json,
    to_lines,
    to_pickle,
)

from xmodal import datasets
from xmodal.datasets.answers import read_answer_list
from xmodal.datasets.class_folders import read_class_names
from xmodal.datasets.detected_image import DetectedImage
from xmodal.datasets.region_store import RegionStore
from xmodal.datasets.region_writer import RegionStoreWriter
from xmodal.evaluation.gqa_grounding import SceneGraphs
from xmodal.vocabulary import Vocabulary

TRAIN, TEST = False, True
_EMPTY = {'missing', 'null', 'no key', 'no item'}


class Reader(NamedTuple):
    """A reader with a right file.

    Attributes:
        name: of the reader, with the file where it reads several.
        file: the file that trials change.
        content: its right content.
        fields: the values that each field may take, by its path; a function of the mode for images.
        read: reads the folder in a mode, and returns the samples.
        others: right content of the other files.
        dump: writes a content as bytes.
        modes: training and test, where the reader has both.
    """

    name: str
    file: str
    content: object
    fields: dict[str, set | dict]
    read: Callable[[Path, bool], object]
    others: dict[str, object] = {}
    dump: Callable[[object], bytes] = to_json
    modes: tuple[bool, ...] = (TRAIN, TEST)


PICTURE = {TRAIN: IMAGE, TEST: TEST_IMAGE}


def samples(dataset):
    """What a data set gives to the pipeline."""
    return [dataset.get_data_info(index, np.random) for index in range(len(dataset))]


def ids(reader):
    """The name of a reader in the name of a test."""
    return reader.name.replace(' ', '_').replace(',', '')


class _First:
    """Makes the choices of a sample: always the first one."""

    choice = staticmethod(lambda items: items[0])


def of(name, ann_file, has_modes=True, **options):
    """Builds a registered data set on a folder, and reads all its samples."""

    def read(folder, test_mode):
        mode = {'test_mode': test_mode} if has_modes else {}
        more = {k: (v(folder) if callable(v) else v) for k, v in options.items()}
        dataset = getattr(datasets, name)(
            **{'ann_file': ann_file, 'data_root': str(folder), **mode, **more}
        )
        return [dataset.get_data_info(index, _First) for index in range(len(dataset))]

    return read


def regions(folder):
    """A pipeline whose images are those of the region store in the folder."""
    return [dict(type='LoadRegions', store=str(folder / 'store'))]


def make_folder(folder):
    """The images and the region store that the files of all readers name."""
    pixels = np.zeros((4, 4, 3), np.uint8)
    images = {suffix: cv2.imencode(f'.{suffix}', pixels)[1].tobytes() for suffix in ('png', 'jpg')}
    names = ['0', '1', 'val2014/COCO_val2014_000000000001', 'val2014/COCO_val2014_000000000002']
    names += ['VG_100K/1', 'VG_100K/2', 'images/train/3/train-1-0-img0']
    names += ['images/train/3/train-1-0-img1', 'images/train/3/train-2-0-img0']
    names += ['images/train/3/train-2-0-img1', 'classes/a/x', 'classes/b/x']
    names += [f'nlvr/images/3/nlvr-{n}-0-{order}' for n in (1, 2) for order in range(6)]
    for name in names:
        for suffix, content in images.items():
            file = folder / f'{name}.{suffix}'
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
    with RegionStoreWriter(folder / 'store', 'test') as writer:
        for name in ('0', '1'):
            writer.append(DetectedImage(name, 4, 4, np.ones((2, 3), np.float32)))
        writer.finish()


COCO_IMAGES = [{'id': n, 'file_name': f'{n}.png', 'height': 9, 'width': 9} for n in (0, 1)]
COCO_INSTANCES = {
    'images': COCO_IMAGES,
    'categories': [{'id': 5, 'name': 'cat'}, {'id': 6, 'name': 'dog'}],
    'annotations': [
        {'id': 50 + n, 'image_id': n, 'category_id': 5 + n, 'bbox': [1 + n, 2, 3.5, 4]}
        for n in (0, 1)
    ],
}
REFERENCES = [
    {
        'ref_id': n,
        'ann_id': 50 + n,
        'image_id': n,
        'split': 'val',
        'sentences': [{'sent': f'the {n}', 'sent_id': n}],
    }
    for n in (0, 1)
]
VQA_QUESTIONS = {
    'data_subtype': 'val2014',
    'questions': [
        {'image_id': n, 'question': f'is it {n}?', 'question_id': 10 + n} for n in (1, 2)
    ],
}
VQA_ANNOTATIONS = {
    'annotations': [
        {
            'question_id': 10 + n,
            'answers': [{'answer': 'yes'}] * 2,
            'answer_type': 'yes/no',
            'question_type': 'is it',
        }
        for n in (1, 2)
    ]
}
VQA = of('VqaDataset', 'q.json', answer_file='a.json', image_info='i.json')
VQA_INFO = {'images': [{'id': n, 'file_name': f'{n - 1}.png'} for n in (1, 2)]}
VQA_FILES = {'q.json': VQA_QUESTIONS, 'a.json': VQA_ANNOTATIONS, 'i.json': VQA_INFO}
REFER_FILES = {'refs.p': REFERENCES, 'instances.json': COCO_INSTANCES}
REFER = of('ReferDataset', 'refs.p', split='val', instances='instances.json')
BOX_FIELDS = {'': LIST, '.0': NUMBER, '.2': LENGTH}


def albef_referring(folder, test_mode):
    """The same keys in both modes, though training needs no boxes."""
    return of(
        'AlbefReferringDataset',
        'list.json',
        references='refs.p',
        instances='instances.json',
    )(folder, test_mode)


def boxes_at(path):
    """The fields of a box."""
    return {path + end: kind for end, kind in BOX_FIELDS.items()}


READERS = [
    Reader(
        'AlbefJsonDataset',
        'list.json',
        [
            {'image': f'{n}.png', 'caption': ['a dog', 'a cat'] if n else 'a', 'image_id': n}
            for n in (0, 1)
        ],
        {
            '': UNIQUE,
            '*': RECORD,
            '*.image': PICTURE,
            '*.caption': TEXT | {'no item'},
            '*.caption.1': TEXT | {'missing'},
            '*.image_id': OPTIONAL_ID,
            '0.caption': TEXT | {'no item', 'in a list', 'twice in a list'},
        },
        of('AlbefJsonDataset', 'list.json'),
    ),
    Reader(
        'KarpathyDataset',
        'split.json',
        {
            'images': [
                {
                    'filename': f'{n}.png',
                    'filepath': '',
                    'split': 'val',
                    'sentences': [{'raw': f'A dog {m}.'} for m in (0, 1)],
                    'cocoid': n,
                    'imgid': n,
                }
                for n in (0, 1)
            ]
        },
        {
            '': UNIQUE,
            'images': UNIQUE,
            'images.*': RECORD,
            'images.*.filename': PICTURE,
            'images.*.filepath': {
                TRAIN: TEXT | {'missing', 'null'},
                TEST: {'empty text', 'missing', 'null', "another's"},
            },
            'images.*.split': TEXT,
            'images.*.sentences': LIST | {'no item'},
            'images.*.sentences.*': RECORD,
            'images.*.sentences.*.raw': TEXT,
            'images.*.cocoid': OPTIONAL_ID,
        },
        of('KarpathyDataset', 'split.json', split='val'),
    ),
    Reader(
        'CocoCaptionDataset',
        'captions.json',
        {
            'images': COCO_IMAGES,
            'annotations': [{'image_id': n, 'caption': f'a {n}'} for n in (0, 1, 1)],
        },
        {
            '': UNIQUE,
            'images': UNIQUE,
            'images.*': UNIQUE,
            'images.*.id': UNIQUE,
            'images.*.file_name': PICTURE,
            'annotations': UNIQUE,
            'annotations.*': RECORD,
            'annotations.*.image_id': KNOWN | {'one'},
            'annotations.*.caption': TEXT,
        },
        of('CocoCaptionDataset', 'captions.json'),
    ),
    Reader(
        'VqaDataset',
        'q.json',
        VQA_QUESTIONS,
        {
            '': UNIQUE,
            'data_subtype': OPTIONAL_TEXT,
            'questions': UNIQUE,
            'questions.*': UNIQUE,
            'questions.*.image_id': KNOWN | {'one'},
            'questions.*.question': TEXT,
            'questions.*.question_id': UNIQUE,
        },
        VQA,
        VQA_FILES,
    ),
    Reader(
        'VqaDataset, annotations',
        'a.json',
        VQA_ANNOTATIONS,
        {
            '': UNIQUE,
            'annotations': UNIQUE,
            'annotations.*': UNIQUE,
            'annotations.*.question_id': UNIQUE,
            'annotations.*.answers': LIST,
            'annotations.*.answers.*': RECORD,
            'annotations.*.answers.*.answer': TEXT,
            'annotations.*.answer_type': OPTIONAL_TEXT,
            'annotations.*.question_type': OPTIONAL_TEXT,
        },
        VQA,
        VQA_FILES,
    ),
    Reader(
        'VqaDataset, images',
        'i.json',
        VQA_INFO,
        {
            '': UNIQUE,
            'images': UNIQUE,
            'images.*': UNIQUE,
            'images.*.id': UNIQUE,
            'images.*.file_name': PICTURE,
        },
        VQA,
        VQA_FILES,
    ),
    Reader(
        'AlbefVqaDataset',
        'vqa.json',
        [
            {
                'image': f'{n}.png',
                'question': f'is it {n}?',
                'answer': ['yes', 'no'] if n else 'yes',
                'dataset': 'vqa' if n else 'vg',
                'question_id': n,
            }
            for n in (0, 1)
        ],
        {
            '': UNIQUE,
            '*': RECORD,
            '*.image': PICTURE,
            '*.question': TEXT,
            '*.answer': {TRAIN: TEXT, TEST: TEXT | _EMPTY - {'no key'}},
            '*.answer.1': TEXT | {'missing'},
            '*.dataset': CHOICE,
            '*.question_id': {TRAIN: None, TEST: UNIQUE_ID},
        },
        of('AlbefVqaDataset', 'vqa.json'),
    ),
    Reader(
        'VisualGenomeQuestionDataset',
        'qa.json',
        [
            {'qas': [{'image_id': n, 'question': 'what?', 'answer': f'A cat {n}.', 'qa_id': n}]}
            for n in (1, 2)
        ],
        {
            '': UNIQUE,
            '*': RECORD,
            '*.qas': UNIQUE | {'no item'},
            '*.qas.*': {'missing'},
            '*.qas.*.image_id': KNOWN | {'one'},
            '*.qas.*.question': TEXT,
            '*.qas.*.answer': TEXT,
            '*.qas.*.qa_id': UNIQUE_ID - {'one'},
        },
        of('VisualGenomeQuestionDataset', 'qa.json', image_data='image_data.json'),
        {'image_data.json': [{'image_id': n, 'url': f'https://x/VG_100K/{n}.jpg'} for n in (1, 2)]},
    ),
    Reader(
        'VisualGenomeQuestionDataset, images',
        'image_data.json',
        [{'image_id': n, 'url': f'https://x/VG_100K/{n}.jpg'} for n in (1, 2)],
        {
            '': UNIQUE,
            '*': UNIQUE,
            '*.image_id': UNIQUE,
            '*.url': {TRAIN: {"another's", 'device'}, TEST: {"another's"}},
        },
        of('VisualGenomeQuestionDataset', 'qa.json', image_data='image_data.json'),
        {
            'qa.json': [
                {'qas': [{'image_id': n, 'question': 'what?', 'answer': 'a cat', 'qa_id': n}]}
                for n in (1, 2)
            ]
        },
    ),
    Reader(
        'GqaDataset',
        'gqa.json',
        {
            str(n): {
                'question': 'is it?',
                'imageId': str(n),
                'answer': 'yes',
                'isBalanced': True,
                'types': {'structural': 'verify', 'semantic': 'obj', 'detailed': 'exist'},
                'groups': {'global': 'thing'},
                'entailed': ['7', '8'],
                'annotations': {'question': {'0': '42'}, 'fullAnswer': {'1': '43'}},
            }
            for n in (0, 1)
        },
        {
            '': UNIQUE,
            '*': RECORD,
            '*.question': TEXT,
            '*.imageId': {TRAIN: ID - {'outside'}, TEST: {"another's", 'one'}},
            '*.answer': {TRAIN: TEXT, TEST: OPTIONAL_TEXT},
            '*.isBalanced': FLAG,
            '*.types': OBJECT | {'missing', 'null', 'no key', 'object'},
            '*.types.structural': OPTIONAL_TEXT,
            '*.types.semantic': OPTIONAL_TEXT,
            '*.types.detailed': OPTIONAL_TEXT,
            '*.groups': OBJECT | {'missing', 'null', 'no key', 'object'},
            '*.groups.global': OPTIONAL_TEXT,
            '*.entailed': TEXTS | {'missing', 'null'},
            '*.entailed.*': TEXT | {'missing'},
            '*.annotations': OBJECT | {'missing', 'null', 'no key', 'object'},
            '*.annotations.question': OBJECT | {'missing', 'null', 'no key'},
            '*.annotations.question.*': TEXT | {'missing'},
        },
        of('GqaDataset', 'gqa.json'),
    ),
    Reader(
        'SnliVeDataset',
        'snli.jsonl',
        [
            {'Flickr30K_ID': str(n), 'sentence2': 'a', 'gold_label': label, 'pairID': f'{n}#'}
            for n, label in enumerate(('neutral', 'entailment'))
        ],
        {
            '*': RECORD,
            '*.Flickr30K_ID': {TRAIN: ID - {'outside'}, TEST: {"another's", 'one'}},
            '*.sentence2': TEXT,
            '*.gold_label': CHOICE,
            '*.pairID': ID | {'missing', 'null'},
        },
        of('SnliVeDataset', 'snli.jsonl'),
        dump=to_lines,
    ),
    Reader(
        'AlbefEntailmentDataset',
        've.json',
        [
            {'image': str(n), 'sentence': 'a', 'label': label}
            for n, label in enumerate(('neutral', 'contradiction'))
        ],
        {
            '': UNIQUE,
            '*': RECORD,
            '*.image': {TRAIN: ID - {'outside'}, TEST: {"another's", 'one'}},
            '*.sentence': TEXT,
            '*.label': CHOICE,
        },
        of('AlbefEntailmentDataset', 've.json'),
    ),
    Reader(
        'Nlvr2Dataset',
        'nlvr2.json',
        [
            {
                'identifier': f'train-{n}-0-0',
                'sentence': 'two dogs',
                'label': label,
                'left_url': 'l',
                'right_url': 'r',
                'directory': 3,
            }
            for n, label in ((1, 'True'), (2, 'False'))
        ],
        {
            '*': RECORD,
            '*.identifier': {"another's"},
            '*.sentence': TEXT,
            '*.label': CHOICE | {'true'},
            '*.left_url': TEXT,
            '*.directory': {TRAIN: ID, TEST: {"another's"}},
        },
        of('Nlvr2Dataset', 'nlvr2.json'),
        dump=to_lines,
    ),
    Reader(
        'AlbefReasoningDataset',
        'nlvr_albef.json',
        [
            {'images': ['0.png', '1.png'], 'sentence': 'a', 'label': label}
            for label in ('True', 'False')
        ],
        {
            '': UNIQUE,
            '*': RECORD,
            '*.images': LIST,
            '*.images.*': PICTURE,
            '*.sentence': TEXT,
            '*.label': CHOICE | {'true'},
        },
        of('AlbefReasoningDataset', 'nlvr_albef.json'),
    ),
    Reader(
        'NlvrDataset',
        'nlvr.json',
        [
            {'identifier': f'{n}-0', 'sentence': 'a', 'label': label, 'directory': '3'}
            for n, label in ((1, 'true'), (2, 'false'))
        ],
        {
            '*': RECORD,
            '*.identifier': {TRAIN: NAME, TEST: {"another's"}},
            '*.sentence': TEXT,
            '*.label': CHOICE | {'true'},
            '*.directory': {TRAIN: ID, TEST: {"another's"}},
        },
        of('NlvrDataset', 'nlvr.json'),
        dump=to_lines,
    ),
    Reader(
        'LxmertPretrainDataset',
        'pretrain.json',
        [
            {
                'img_id': str(n),
                'sentf': {'mscoco': ['a dog'], 'vqa': ['is it?', 'what?']},
                'labelf': {'vqa': [{'yes': 1.0}, {'dog': 0.3, 'cat': 1}]},
            }
            for n in (0, 1)
        ],
        {
            '': UNIQUE,
            '*': RECORD,
            '*.img_id': {TRAIN: IMAGE, TEST: {"another's"}},
            '*.sentf': OBJECT,
            '*.sentf.mscoco': TEXTS | {'missing'},
            '*.sentf.mscoco.*': TEXT | {'missing'},
            '*.labelf': OBJECT | {'missing', 'null', 'no key'},
            '*.labelf.vqa': LIST | {'missing', 'null'},
            '*.labelf.vqa.*': OBJECT | {'no key', 'object'},
            '*.labelf.vqa.*.dog': SCORE | {'missing'},
        },
        of('LxmertPretrainDataset', 'pretrain.json', pipeline=regions),
    ),
    Reader(
        'LxmertQuestionDataset',
        'lxmert_vqa.json',
        [
            {
                'question_id': n,
                'img_id': str(n),
                'sent': 'is it?',
                'label': {'yes': 1.0},
                'answer_type': 'yes/no',
                'question_type': 'is it',
            }
            for n in (0, 1)
        ],
        {
            '': UNIQUE,
            '*': RECORD,
            '*.question_id': UNIQUE_ID,
            '*.img_id': {TRAIN: IMAGE, TEST: {"another's"}},
            '*.sent': TEXT,
            '*.label': {
                TRAIN: {"another's", 'no key', 'object'},
                TEST: _EMPTY - {'no item'} | {"another's", 'object'},
            },
            '*.label.yes': SCORE | {'missing'},
            '*.answer_type': OPTIONAL_TEXT,
            '*.question_type': OPTIONAL_TEXT,
        },
        of('LxmertQuestionDataset', 'lxmert_vqa.json', pipeline=regions),
    ),
    Reader(
        'LxmertReasoningDataset',
        'lxmert_nlvr.json',
        [
            {'identifier': f'train-{n}-0-0', 'img0': '0', 'img1': '1', 'sent': 'a', 'label': n}
            for n in (0, 1)
        ],
        {
            '': UNIQUE,
            '*': RECORD,
            '*.identifier': {"another's"},
            '*.img0': {TRAIN: IMAGE, TEST: {"another's"}},
            '*.sent': TEXT,
            '*.label': CHOICE | {'one'},
        },
        of('LxmertReasoningDataset', 'lxmert_nlvr.json', pipeline=regions),
    ),
    Reader(
        'ReferDataset',
        'refs.p',
        REFERENCES,
        {
            '': UNIQUE,
            '*': {TRAIN: RECORD, TEST: {'missing'}},
            '*.ref_id': {TRAIN: None, TEST: INTEGER},
            '*.ann_id': {TRAIN: None, TEST: UNIQUE},
            '*.image_id': {TRAIN: KNOWN | {'one'}, TEST: {'one'}},
            '*.split': TEXT,
            '*.sentences': {TRAIN: LIST | {'no item'}, TEST: {'no item'}},
            '*.sentences.*': {TRAIN: RECORD, TEST: {'missing'}},
            '*.sentences.*.sent': TEXT,
            '*.sentences.*.sent_id': {TRAIN: None, TEST: INTEGER - {"another's"}},
        },
        REFER,
        REFER_FILES,
        to_pickle,
    ),
    Reader(
        'ReferDataset, instances',
        'instances.json',
        COCO_INSTANCES,
        {
            '': UNIQUE,
            'images': UNIQUE,
            'images.*': UNIQUE,
            'images.*.id': UNIQUE | {'one'},
            'images.*.file_name': PICTURE,
            'images.*.height': SIZE,
            'images.*.width': SIZE,
            'annotations': {TRAIN: {'no item'}, TEST: UNIQUE},
            'annotations.*': {TRAIN: {'missing'}, TEST: UNIQUE},
            'annotations.*.id': {TRAIN: INTEGER - {"another's"}, TEST: UNIQUE},
            'annotations.*.image_id': {TRAIN: KNOWN | {'one'}, TEST: {'one'}},
            **boxes_at('annotations.*.bbox'),
        },
        REFER,
        REFER_FILES,
    ),
    Reader(
        'ReferringDataset, proposals',
        'proposals.json',
        [{'image_id': n % 2, 'box': [0, 0, 2, 2], 'score': 0.5} for n in range(4)],
        {
            '': UNIQUE,
            '*': RECORD,
            '*.image_id': INTEGER,
            **boxes_at('*.box'),
        },
        of(
            'ReferDataset',
            'refs.p',
            split='val',
            instances='instances.json',
            proposals='proposals.json',
        ),
        REFER_FILES,
        modes=(TEST,),
    ),
    Reader(
        'ReferringDataset, ALBEF proposals',
        'proposals.json',
        {str(n): [[0, 0, 2, 2, 0.5], [1, 1, 2, 2, 0.5]] for n in (0, 1)},
        {
            '': UNIQUE,
            '*': {"another's"},
            **boxes_at('*.*'),
            '*.*': {'missing', "another's"},
            '*.*.0': NUMBER | {'missing'},  # another number takes its place
            '*.*.2': LENGTH | {'missing'},
            '*.*.4': NUMBER | {'missing'},
        },
        of(
            'ReferDataset',
            'refs.p',
            split='val',
            instances='instances.json',
            proposals='proposals.json',
        ),
        REFER_FILES,
        modes=(TEST,),
    ),
    Reader(
        'AlbefReferringDataset',
        'list.json',
        [{'image': f'{n}.png', 'text': 'a', 'ref_id': n} for n in (0, 1)],
        {
            '': UNIQUE,
            '*': RECORD,
            '*.image': PICTURE,
            '*.text': TEXT,
            '*.ref_id': {TRAIN: None, TEST: KNOWN | {'one'}},
        },
        albef_referring,
        REFER_FILES,
    ),
    Reader(
        'PhraseListDataset',
        'phrases.json',
        [
            {
                'image': f'{n}.png',
                'phrase': 'a',
                'box_xyxy': [1, 2, 3.5, 4],
                'width': 9,
                'height': 9,
                'split': 'val',
            }
            for n in (0, 1)
        ],
        {
            '': UNIQUE,
            '*': RECORD,
            '*.image': PICTURE,
            '*.phrase': TEXT,
            '*.box_xyxy': LIST,
            '*.box_xyxy.0': NUMBER,
            '*.box_xyxy.3': {"another's"},
            '*.width': SIZE,
            '*.height': SIZE,
            '*.split': TEXT,
        },
        of('PhraseListDataset', 'phrases.json', split='val'),
    ),
    Reader(
        'InstanceDataset',
        'objects.json',
        {
            **COCO_INSTANCES,
            'annotations': [
                {**item, 'attributes': ['red', 'old']} for item in COCO_INSTANCES['annotations']
            ],
        },
        {
            '': UNIQUE,
            'images': UNIQUE,
            'images.*': UNIQUE,
            'images.*.id': UNIQUE | {'one'},
            'images.*.file_name': PICTURE,
            'categories': UNIQUE,
            'categories.*': UNIQUE,
            'categories.*.id': UNIQUE,
            'categories.*.name': KNOWN,
            'annotations': UNIQUE,
            'annotations.*': RECORD,
            'annotations.*.image_id': KNOWN | {'one'},
            'annotations.*.category_id': KNOWN,
            'annotations.*.attributes': LIST | {'no item', 'missing', 'null'},
            'annotations.*.attributes.1': KNOWN | {'missing'},
            **boxes_at('annotations.*.bbox'),
        },
        of('InstanceDataset', 'objects.json', tags=['cat', 'dog', 'red', 'old']),
    ),
    Reader(
        'SugarCrepeDataset',
        'replace_obj.json',
        {
            str(n): {'filename': f'{n}.png', 'caption': f'a {n}', 'negative_caption': f'the {n}'}
            for n in (0, 1)
        },
        {
            '': UNIQUE,
            '*': RECORD,
            '*.filename': PICTURE,
            '*.caption': TEXT,
            '*.negative_caption': TEXT,
        },
        of('SugarCrepeDataset', 'replace_obj.json'),
    ),
    Reader(
        'AroDataset',
        'relation.json',
        [
            {
                'image_path': f'{n}.png',
                'relation_name': f'on {n}',
                'true_caption': f'a {n}',
                'false_caption': f'the {n}',
                **{f'bbox_{side}': 1 + n for side in 'xywh'},
            }
            for n in (0, 1)
        ],
        {
            '': UNIQUE,
            '*': RECORD,
            '*.image_path': PICTURE,
            '*.relation_name': NAME,
            '*.true_caption': TEXT,
            '*.false_caption': TEXT,
            '*.bbox_x': INTEGER,
            '*.bbox_w': SIZE,
        },
        of('AroDataset', 'relation.json'),
    ),
    Reader(
        'AroDataset, attributes',
        'attribution.json',
        [
            {
                'image_path': f'{n}.png',
                'attributes': ['white', f'{n}'],
                'true_caption': f'a {n}',
                'false_caption': f'the {n}',
                **{f'bbox_{side}': 1 + n for side in 'xywh'},
            }
            for n in (0, 1)
        ],
        {
            '': UNIQUE,
            '*': RECORD,
            '*.attributes': LIST,
            '*.attributes.1': TEXT,
        },
        of('AroDataset', 'attribution.json'),
    ),
    Reader(
        'AroOrderDataset',
        'order.json',
        [{'image': f'{n}.png', 'caption_options': [f'a {n}', f'{n} a', f'{n}']} for n in (0, 1)],
        {
            '': UNIQUE,
            '*': RECORD,
            '*.image': PICTURE,
            '*.caption_options': LIST,
            '*.caption_options.1': TEXT | {'missing'},
        },
        of('AroOrderDataset', 'order.json'),
    ),
    Reader(
        'WinogroundDataset',
        'examples.jsonl',
        [
            {
                'id': n,
                'image_0': '0',
                'image_1': '1',
                'caption_0': f'a {n}',
                'caption_1': f'{n} a',
                'collapsed_tag': 'Object',
            }
            for n in (0, 1)
        ],
        {
            '*': RECORD,
            '*.id': ID,
            '*.image_1': {TRAIN: NAME - {'outside'}, TEST: {"another's"}},
            '*.caption_0': TEXT,
            '*.collapsed_tag': OPTIONAL_TEXT,
        },
        of('WinogroundDataset', 'examples.jsonl'),
        dump=to_lines,
    ),
    Reader(
        'VsrDataset',
        'vsr.jsonl',
        [
            {'image': f'{n}.png', 'caption': f'a {n}', 'label': n, 'relation': f'on {n}'}
            for n in (0, 1)
        ],
        {
            '*': RECORD,
            '*.image': PICTURE,
            '*.caption': TEXT,
            '*.label': {'one', "another's"},
            '*.relation': TEXT,
        },
        of('VsrDataset', 'vsr.jsonl'),
        dump=to_lines,
    ),
    Reader(
        'class names, list',
        'names.json',
        ['tench', 'fish'],
        {'': UNIQUE, '*': NAME},
        lambda folder, _: read_class_names(str(folder / 'names.json'), ['a', 'b']),
        modes=(TEST,),
    ),
    Reader(
        'class names, object',
        'names.json',
        {'a': 'tench', 'b': 'fish'},
        {'': UNIQUE, '*': NAME},
        lambda folder, _: read_class_names(str(folder / 'names.json'), ['a', 'b']),
        modes=(TEST,),
    ),
    Reader(
        'answer list',
        'answers.json',
        ['yes', 'no'],
        {'': UNIQUE, '*': TEXT | {'missing'}},
        lambda folder, _: read_answer_list(folder / 'answers.json', 'answer_list'),
        modes=(TEST,),
    ),
    Reader(
        'Vocabulary',
        'vocab.json',
        {'word2idx': {'<pad>': 0, '<start>': 1, '<end>': 2, '<unk>': 3, 'a': 4, 'b': 5}},
        {'': UNIQUE, 'word2idx': UNIQUE, 'word2idx.*': {'missing'}},
        lambda folder, _: Vocabulary.read(folder / 'vocab.json'),
        modes=(TEST,),
    ),
    Reader(
        'SceneGraphs',
        'graphs.json',
        {
            str(n): {'width': 9, 'height': 9, 'objects': {'7': {'x': 1, 'y': 2, 'w': 3, 'h': 4}}}
            for n in (0, 1)
        },
        {
            '': UNIQUE | {'no key'},
            '*': RECORD,
            '*.width': SIZE,
            '*.height': SIZE,
            '*.objects': OBJECT | {'no key'},
            '*.objects.*': RECORD,
            '*.objects.*.x': NUMBER,
            '*.objects.*.w': LENGTH,
        },
        lambda folder, _: SceneGraphs(str(folder / 'graphs.json'))._boxes,
        modes=(TEST,),
    ),
    Reader(
        'RegionStore',
        'store/store.json',
        {
            'version': 1,
            'images': 2,
            'regions': 4,
            'id_bytes': 2,
            'feature_dims': 3,
            'boxes': False,
            'labels': False,
            'dtype': 'float32',
        },
        {
            '': UNIQUE,
            'version': {'one'},
            'images': UNIQUE,
            'regions': UNIQUE,
            'id_bytes': UNIQUE,
            'feature_dims': UNIQUE,
            'boxes': UNIQUE | {'true'},
            'labels': UNIQUE | {'true'},
            'dtype': CHOICE,
        },
        lambda folder, _: [RegionStore(folder / 'store')[name] for name in '01'],
        modes=(TEST,),
    ),
]

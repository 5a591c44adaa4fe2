"""Writes scenes with annotations in the formats of the benchmarks, one function per format.

An exporter takes the folder and ``{split: [Record, …]}``, and writes its files. They are read by
the same readers as the real datasets.
"""

from collections.abc import Callable
from itertools import chain
from pathlib import Path

from xmodal.datasets.shapes.coco_instances import CATEGORIES, annotations_of, image_entry
from xmodal.datasets.shapes.detections import write_detections
from xmodal.datasets.shapes.entailment import write_snli_ve
from xmodal.datasets.shapes.gqa import GQA_WORDS
from xmodal.datasets.shapes.gqa_files import write_gqa
from xmodal.datasets.shapes.grammar import vocabulary
from xmodal.datasets.shapes.lxmert import write_lxmert
from xmodal.datasets.shapes.precomp import write_precomp
from xmodal.datasets.shapes.questions import QUESTION_WORDS
from xmodal.datasets.shapes.reasoning import REASONING_WORDS, write_nlvr2
from xmodal.datasets.shapes.record import Splits, image_id
from xmodal.datasets.shapes.referring import write_refcoco_plus
from xmodal.datasets.shapes.vqa import write_vqa
from xmodal.files import write_json


def write_albef(folder: Path, splits: Splits) -> None:
    """``albef/SPLIT.json``: a list of items with image, captions and image_id."""
    for split, records in splits.items():
        write_json(
            folder / 'albef' / f'{split}.json',
            [
                {
                    'image': f'images/{record.image}',
                    'caption': list(record.captions),
                    'image_id': image_id(split, record),
                }
                for record in records
            ],
        )


def write_karpathy(folder: Path, splits: Splits) -> None:
    """``karpathy/dataset_shapes.json``, in the layout of ``dataset_coco.json``."""
    images, sentence_id = [], 0
    for split, records in splits.items():
        for record in records:
            ids = list(range(sentence_id, sentence_id + len(record.captions)))
            sentence_id += len(ids)
            image = image_id(split, record)
            filepath, filename = f'images/{record.image}'.rsplit('/', 1)
            sentences = [
                {'tokens': text.split(), 'raw': text, 'imgid': image, 'sentid': sentid}
                for text, sentid in zip(record.captions, ids, strict=True)
            ]
            images.append(
                {
                    'filepath': filepath,
                    'filename': filename,
                    'imgid': image,
                    'cocoid': image,
                    'split': split,
                    'sentids': ids,
                    'sentences': sentences,
                }
            )
    content = {'dataset': 'shapes', 'images': images}
    write_json(folder / 'karpathy' / 'dataset_shapes.json', content)


def write_coco(folder: Path, splits: Splits) -> None:
    """``coco/captions_SPLIT.json`` and ``coco/instances_SPLIT.json``; categories are shapes."""
    for split, records in splits.items():
        images, captions, instances = [], [], []
        for record in records:
            image = image_id(split, record)
            images.append(image_entry(record, image))
            for text in record.captions:
                captions.append({'id': len(captions), 'image_id': image, 'caption': text})
            annotations = annotations_of(record, image, first_id=len(instances) + 1)
            for obj, annotation in zip(record.scene.objects, annotations, strict=True):
                instances.append({**annotation, 'attributes': [obj.colour, obj.size, obj.texture]})
        info = {'description': 'xmodal shapes'}
        write_json(
            folder / 'coco' / f'captions_{split}.json',
            {'info': info, 'images': images, 'annotations': captions},
        )
        write_json(
            folder / 'coco' / f'instances_{split}.json',
            {'info': info, 'images': images, 'annotations': instances, 'categories': CATEGORIES},
        )


def write_regions(folder: Path, splits: Splits) -> None:
    """``precomp/`` and, from its features, ``regions/``."""
    write_precomp(folder, splits)
    write_detections(folder, splits)


def write_vocabulary(folder: Path, splits: Splits) -> None:
    """``vocab.txt``: the words of the grammar, then those of the tasks, in the format of BERT."""
    words = dict.fromkeys(chain(vocabulary(), *TASK_WORDS))
    (folder / 'vocab.txt').write_text('\n'.join(words) + '\n', 'utf-8')


# Words that captions do not have, one tuple per task. New words belong at the end, since the token
# ids of trained models follow from the order. There may be 128 words in total.
TASK_WORDS: tuple[tuple[str, ...], ...] = (REASONING_WORDS, QUESTION_WORDS, GQA_WORDS)

EXPORTERS: tuple[Callable[[Path, Splits], None], ...] = (
    write_regions,  # first, since it takes the longest
    write_albef,
    write_karpathy,
    write_coco,
    write_vocabulary,
    write_snli_ve,
    write_nlvr2,
    write_refcoco_plus,
    write_vqa,
    write_gqa,
    write_lxmert,
)

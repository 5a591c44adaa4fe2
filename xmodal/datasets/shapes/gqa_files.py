"""The questions in GQA's form on disk: with the objects that they name, and scene graphs."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from xmodal.datasets.shapes.gqa import GqaItem, generate_gqa_items
from xmodal.datasets.shapes.phrasing import Mention
from xmodal.datasets.shapes.questions import answer_list
from xmodal.datasets.shapes.record import Record, Splits, image_id
from xmodal.datasets.shapes.scene import SceneObject, direction
from xmodal.files import write_json

_OFFICIAL_SPLITS = {'train': 'train', 'val': 'val', 'test': 'testdev'}
ObjectIds = dict[SceneObject, str]  # of the objects of a scene, in their order


def write_gqa(folder: Path, splits: Splits) -> None:
    """``gqa/{train,val,testdev}_balanced_questions.json``, and ``all`` of ``val`` and ``testdev``.

    ``{val,testdev}_choices.json`` have the answers that each question allows,
    ``{val,testdev}_sceneGraphs.json`` the objects of each scene. ``answer_list.json`` has the
    answers of VQA, which include those of GQA.
    """
    write_json(folder / 'gqa' / 'answer_list.json', answer_list())
    for split, records in splits.items():
        official = _OFFICIAL_SPLITS[split]
        questions, choices, graphs = {}, {}, {}
        for record in records:
            ids = _object_ids(split, record)
            graphs[_image(record)] = _scene_graph(record, ids)
            for question_id, item, fields in _questions(split, record, ids):
                questions[question_id] = fields
                choices[question_id] = {'valid': item.valid, 'plausible': item.valid}
        balanced = {key: fields for key, fields in questions.items() if fields['isBalanced']}
        write_json(folder / 'gqa' / f'{official}_balanced_questions.json', balanced)
        if split != 'train':
            write_json(folder / 'gqa' / f'{official}_all_questions.json', questions)
            write_json(folder / 'gqa' / f'{official}_choices.json', choices)
            write_json(folder / 'gqa' / f'{official}_sceneGraphs.json', graphs)


def _image(record: Record) -> str:
    """GQA's id of an image."""
    return Path(record.image).stem


def _object_ids(split: str, record: Record) -> ObjectIds:
    """Ids that no object of another scene has."""
    first = 10 * image_id(split, record)
    return {obj: str(first + index) for index, obj in enumerate(record.scene.objects)}


def _scene_graph(record: Record, ids: ObjectIds) -> dict:
    """A value of ``sceneGraphs.json``; all clear directions between objects are relations."""
    nodes = {}
    for (obj, object_id), (x, y, width, height) in zip(ids.items(), record.boxes, strict=True):
        relations = [
            {'name': name, 'object': other_id}
            for other, other_id in ids.items()
            if other is not obj and (name := direction(obj, other))
        ]
        nodes[object_id] = {
            'name': obj.shape,
            'x': x,
            'y': y,
            'w': width,
            'h': height,
            'attributes': [obj.colour, obj.size, obj.texture],
            'relations': relations,
        }
    return {'width': record.size, 'height': record.size, 'objects': nodes}


def _questions(split: str, record: Record, ids: ObjectIds) -> Iterator[tuple[str, GqaItem, dict]]:
    """The questions of a scene with their ids and GQA's fields."""
    question_id, image = 100 * image_id(split, record), _image(record)
    for item in generate_gqa_items(split, record.scene):
        entailed_ids = [str(question_id + i) for i in range(1, len(item.entails) + 1)]
        yield str(question_id), item, _fields(image, item, True, entailed_ids, ids)
        for entailed_id, entailed in zip(entailed_ids, item.entails, strict=True):
            yield entailed_id, entailed, _fields(image, entailed, False, [], ids)
        question_id += 1 + len(entailed_ids)


def _fields(
    image: str, item: GqaItem, is_balanced: bool, entailed_ids: list[str], ids: ObjectIds
) -> dict:
    # A sentence begins with the object that the answer names, and repeats what the question names.
    in_sentence = (*item.answer_mentions, *item.mentions) if item.sentence else ()
    return {
        'question': f'{item.text}?',
        'imageId': image,
        'answer': item.answer,
        'fullAnswer': f'{item.sentence or item.answer}.',
        'isBalanced': is_balanced,
        'types': {
            'structural': item.structural,
            'semantic': item.semantic,
            'detailed': f'{item.structural}{item.semantic.capitalize()}',
        },
        'groups': {'global': item.group, 'local': None},
        'entailed': entailed_ids,
        'equivalent': [],
        'annotations': {
            'question': annotate(item.text, item.mentions, ids),
            'answer': annotate(item.answer, item.answer_mentions, ids),
            'fullAnswer': annotate(item.sentence, in_sentence, ids),
        },
    }


def annotate(text: str, mentions: Iterable[Mention], ids: ObjectIds) -> dict[str, str]:
    """The ids of the objects that a text names, by the positions of their words.

    Args:
        text: without punctuation.
        mentions: in the order of the text.
        ids: of the objects of the scene.

    Returns:
        ``{'3': id}`` for the fourth word, ``{'3:5': id}`` for the fourth and the fifth.
    """
    words, annotation, end = text.split(), {}, 0
    for phrase, obj in mentions:
        named = phrase.split()
        start = next(i for i in range(end, len(words)) if words[i : i + len(named)] == named)
        end = start + len(named)
        if obj is not None:
            annotation[str(start) if len(named) == 1 else f'{start}:{end}'] = ids[obj]
    return annotation

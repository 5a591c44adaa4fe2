"""The papers' data in the layout of docs/data.md, made of the scenes of the embedded world.

The world's files have each benchmark's format. Here they get the benchmark's names of files and
images, and what the world has no use for is added: Visual Genome's questions, the detections of
RefCOCO+, LXMERT's lists of VQA.
"""

from collections import Counter
from pathlib import Path

from benchmark_regions import write_regions
from scene_names import COCO, Scenes, coco_name, link, statement_images

from xmodal.datasets.shapes.record import write_json_lines
from xmodal.files import write_json

CLASSES = 6
# ALBEF's lists, and the folders of their images.
LISTS = {name: name.split('_')[0] for name in 'coco vg sbu cc3m_train cc3m_val cc12m'.split()}


def write_benchmarks(data: Path, world: Path) -> None:
    """Writes all that the configs of the papers read, except for weights and vocabularies."""
    scenes = Scenes(world)
    write_images(data, scenes)
    write_captions(data, scenes)
    write_snli_ve(data, scenes)
    write_refcoco_plus(data, scenes)
    write_vqa(data, scenes)
    write_lxmert(data, scenes)
    write_gqa(data, scenes)
    write_nlvr2(data, scenes)
    write_imagenet(data, scenes)
    write_regions(data, scenes)


def write_images(data: Path, scenes: Scenes) -> None:
    """Each scene in COCO, Flickr30K, Visual Genome and the sets of pre-training."""
    for number, file in scenes.files.items():
        for subset in COCO.values():
            link(data / f'coco/{subset}/{coco_name(number, subset)}.jpg', file)
        link(data / f'flickr30k/images/{number}.jpg', file)
        link(data / f'pretrain/vg/{visual_genome_folder(number)}/{number}.jpg', file)
    for name in set(LISTS.values()):
        link(data / f'pretrain/{name}/images', scenes.world / 'images')


def visual_genome_folder(number: int) -> str:
    return 'VG_100K_2' if number % 2 else 'VG_100K'


def write_captions(data: Path, scenes: Scenes) -> None:
    """ALBEF's lists, and Karpathy's splits of COCO and of Flickr30K."""
    items = scenes.read('albef/train.json')
    for name, images in LISTS.items():
        named = [{**item, 'image': f'{images}/{item["image"]}'} for item in items]
        write_json(data / f'albef/{name}.json', named)
    coco, flickr = [], []
    for image in scenes.read('karpathy/dataset_shapes.json')['images']:
        number = image.pop('cocoid')
        image.pop('filepath')
        flickr.append({**image, 'filename': f'{number}.jpg'})
        if image['split'] == 'train' and number % 2:
            image['split'] = 'restval'
        subset = 'train2014' if image['split'] == 'train' else 'val2014'
        name = f'{coco_name(number, subset)}.jpg'
        coco.append({**image, 'filepath': subset, 'filename': name, 'cocoid': number})
    write_json(data / 'karpathy/dataset_coco.json', {'dataset': 'coco', 'images': coco})
    write_json(data / 'karpathy/dataset_flickr30k.json', {'dataset': 'flickr30k', 'images': flickr})


def write_snli_ve(data: Path, scenes: Scenes) -> None:
    for split in ('train', 'dev', 'test'):
        name = f'snli_ve/snli_ve_{split}.jsonl'
        pairs = scenes.read_lines(name)
        for pair in pairs:
            pair['Flickr30K_ID'] = str(scenes.numbers[Path(pair['Flickr30K_ID']).name])
        write_json_lines(data / name, pairs)


def write_refcoco_plus(data: Path, scenes: Scenes) -> None:
    """REFER's files, all of COCO's train2014, and MAttNet's detections."""
    link(data / 'refcoco+/refs(unc).p', scenes.world / 'refcoco+/refs(unc).p')
    instances = scenes.read('refcoco+/instances.json')
    for image in instances['images']:
        image['file_name'] = f'{coco_name(image["id"], "train2014")}.jpg'
    write_json(data / 'refcoco+/instances.json', instances)
    detections = [
        {'image_id': item['image_id'], 'box': item['bbox'], 'score': 0.9}
        for item in instances['annotations']
    ]
    write_json(data / 'refcoco+/dets.json', detections)


def write_vqa(data: Path, scenes: Scenes) -> None:
    """VQA v2's files, LXMERT's of the same questions, and Visual Genome's."""
    for name in ('answer_list', 'trainval_label2ans'):
        write_json(data / f'vqa/{name}.json', scenes.read('vqa/answer_list.json'))
    pairs = {}
    for split, subset in COCO.items():
        asked, answered = (
            {**scenes.read(f'vqa/{kind}_{split}.json'), 'data_subtype': subset}
            for kind in ('questions', 'annotations')
        )
        write_json(data / f'vqa/v2_OpenEnded_mscoco_{subset}_questions.json', asked)
        write_json(data / f'vqa/v2_mscoco_{subset}_annotations.json', answered)
        pairs[split] = list(zip(asked['questions'], answered['annotations'], strict=True))
    write_visual_genome(data, pairs['train'])
    # LXMERT's lists divide val by image.
    lists = {'train': pairs['train']}
    for odd, name in enumerate(('minival', 'nominival')):
        lists[name] = [pair for pair in pairs['val'] if pair[0]['image_id'] % 2 == odd]
    for name, kept in lists.items():
        subset = COCO.get(name, 'val2014')
        write_json(data / f'vqa/{name}.json', [lxmert_question(*pair, subset) for pair in kept])


def lxmert_question(question: dict, annotation: dict, subset: str) -> dict:
    counts = Counter(answer['answer'] for answer in annotation['answers'])
    return {
        'question_id': question['question_id'],
        'img_id': coco_name(question['image_id'], subset),
        'sent': question['question'],
        'label': {answer: min(1.0, 0.3 * count) for answer, count in counts.items()},
        'answer_type': annotation['answer_type'],
        'question_type': annotation['question_type'],
    }


def write_visual_genome(data: Path, pairs: list[tuple[dict, dict]]) -> None:
    """Questions with one answer, a sentence, and the folders of the images."""
    items: dict[int, dict] = {}
    for index, (question, annotation) in enumerate(pairs):
        number = question['image_id']
        item = {
            'qa_id': index,
            'image_id': number,
            'question': question['question'],
            'answer': annotation['multiple_choice_answer'].capitalize() + '.',
        }
        items.setdefault(number, {'id': number, 'qas': []})['qas'].append(item)
    write_json(data / 'vg/question_answers.json', list(items.values()))
    urls = {number: f'https://host/{visual_genome_folder(number)}/{number}.jpg' for number in items}
    images = [{'image_id': number, 'url': url} for number, url in urls.items()]
    write_json(data / 'vg/image_data.json', images)


def write_lxmert(data: Path, scenes: Scenes) -> None:
    """LXMERT's pre-training: sentences of images of COCO and of Visual Genome."""
    write_json(data / 'lxmert/answer_list.json', scenes.read('lxmert/answer_list.json'))
    names = {'train': 'mscoco_train', 'val': 'mscoco_nominival', 'test': 'vgnococo'}
    for split, name in names.items():
        images = scenes.read(f'lxmert/{split}.json')
        for image in images:
            number = scenes.numbers[image['img_id']]
            image['img_id'] = coco_name(number, COCO[split]) if split in COCO else str(number)
        write_json(data / f'lxmert/{name}.json', images)


def write_gqa(data: Path, scenes: Scenes) -> None:
    write_json(data / 'gqa/trainval_label2ans.json', scenes.read('gqa/answer_list.json'))
    for split in ('train', 'val', 'testdev'):
        name = f'gqa/{split}_balanced_questions.json'
        questions = scenes.read(name)
        for question in questions.values():
            question['imageId'] = str(scenes.numbers[question['imageId']])
        write_json(data / name, questions)


def write_nlvr2(data: Path, scenes: Scenes) -> None:
    for split in ('train', 'dev', 'test1'):
        examples = scenes.read_lines(f'nlvr2/{split}.json')
        for example in examples:
            folder = split
            if split == 'train':
                example['directory'] = int(example['identifier'].split('-')[1]) % 100
                folder = f'images/train/{example["directory"]}'
            for name, url in statement_images(example).items():
                link(data / f'nlvr2/{folder}/{name}.png', scenes.world / url)
        write_json_lines(data / f'nlvr2/{split}.json', examples)


def write_imagenet(data: Path, scenes: Scenes) -> None:
    """Some classes of single objects, two images each."""
    folders = sorted((scenes.world / 'classes/images').iterdir())[:CLASSES]
    for index, folder in enumerate(folders):
        for image in range(2):
            file = data / f'imagenet/val/n0144{index:04d}/ILSVRC2012_val_{image:08d}.JPEG'
            link(file, folder / f'{image}.png')
    names = [folder.name.replace('_', ' ') for folder in folders]
    write_json(data / 'imagenet/classes.json', names)

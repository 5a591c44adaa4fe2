"""The report of a run: one page, nothing outside it."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import cv2
import jinja2
import numpy as np
import torch
from mmengine.config import Config
from torch import nn

from xmodal.datasets.base import evenly_spaced
from xmodal.structures import Encoded
from xmodal.visualization.anchors import anchor_maps
from xmodal.visualization.figures import (
    draw_curve,
    draw_scales,
    lay_over,
    mark_cells,
    read_scalars,
    to_svg,
    to_uri,
)
from xmodal.visualization.grad_cam import grad_cam
from xmodal.visualization.sketch import assign_words, draw_partitions, draw_words

# Words that no patch shows.
FUNCTION_WORDS = frozenset(
    'a an the is are of to in on at by for with and or that which there it its his her their can '
    'be seen picture lies lie this while as from'.split()
)

# Encodes picture files and texts: xmodal.apis.Inferencer.encode.
Encode = Callable[[Sequence[str], Sequence[str]], tuple[Encoded, Encoded]]


class Shown(NamedTuple):
    """An image on the page: as a data URI; where there is none, by its name and a text of it."""

    picture: str
    name: str
    text: str


class Example(NamedTuple):
    """A query, image or text, with what was found for it, (content, whether it is right) each."""

    query: Shown | str
    found: list[tuple[str | Shown, bool]]


class Stage(NamedTuple):
    """A set of retrieval metrics: what stands before their names, and what they are of."""

    prefix: str
    label: str


class HeatMaps(NamedTuple):
    """One picture with its text: the whole text's map, and (word, Grad-CAM, anchors or '') each."""

    image: str
    text: str
    whole: str
    words: list[tuple[str, str, str]]


def write_report(
    work_dir: Path,
    config: Config,
    model: nn.Module,
    rankings: dict,
    out: Path,
    encode: Encode | None = None,
    examples: int = 4,
) -> None:
    """Writes the page.

    Args:
        work_dir: of the run, with its logs.
        config: of the run.
        model: the trained model.
        rankings: what the test saved (``save_rankings``).
        out: file to write.
        encode: encodes picture files for the model; None where the images are no files but
            features.
        examples: queries shown of each kind.
    """
    scalars = read_scalars(work_dir)
    curves = [
        draw_curve(name, points)
        for name, points in sorted(scalars.items(), key=lambda item: _order(item[0]))
        if _order(name) < 9 and len(points) > 1
    ]
    # Spread over the set, not the best ones.
    count = len(rankings['images'])
    shown = np.linspace(0, count - 1, examples + 2).astype(int)[1:-1].tolist()
    pictures = encode is not None
    stages = metric_stages(rankings['metrics'])
    page = _template().render(
        title=work_dir.name,
        metrics=rankings['metrics'],
        stages=stages,
        chance=chance_recall(rankings),
        images=count,
        texts=len(rankings['texts']),
        curves=curves,
        found_images=[_images_of_text(rankings, image, pictures) for image in shown],
        found_texts=[_texts_of_image(rankings, image, pictures) for image in shown],
        heat_maps=_draw_heat_maps(model, encode, rankings, shown) if encode else None,
        sketches=_draw_sketches(model, rankings['texts']),
        scales=_draw_scales(work_dir / 'token_type_scale.json'),
        config=config.pretty_text,
        epochs=config.train_cfg.max_epochs,
    )
    out.write_text(page, encoding='utf-8')


def chance_recall(rankings: dict) -> float:
    """Mean recall, in percent, of rankings in random order."""
    images, texts = len(rankings['images']), len(rankings['texts'])
    own = np.bincount(rankings['owner'], minlength=images)
    recalls = []
    for k in (1, 5, 10):
        # Hypergeometric: none of an image's own texts among the first k.
        missed = np.ones(images)
        for drawn in range(k):
            missed *= np.clip((texts - own - drawn) / (texts - drawn), 0, 1)
        recalls += [float((1 - missed).mean()), min(k / images, 1)]
    return 100 * float(np.mean(recalls))


def metric_stages(metrics: dict[str, float]) -> list[Stage]:
    """The sets of retrieval metrics, that of the whole test last."""
    if 'first_stage/mean_recall' in metrics:
        return [Stage('first_stage/', ', by vectors'), Stage('', ', re-ranked')]
    if 'mean_recall' in metrics:
        return [Stage('', '')]
    named = [name.removesuffix('/mean_recall') for name in metrics if name.endswith('/mean_recall')]
    return [Stage(f'{name}/', f', {name}') for name in named]


def _order(name: str) -> int:
    """Losses first, then what is measured of them; 9 for what is not shown."""
    shown = ('loss', 'mean_recall', 'accuracy', 'share', 'hinge', 'temperature', 'lr')
    for place, part in enumerate(shown):
        if part in name and not name.startswith('base_'):
            return place
    return 9


def _template() -> jinja2.Template:
    loader = jinja2.PackageLoader('xmodal.visualization', package_path='')
    return jinja2.Environment(loader=loader, autoescape=True).get_template('report.html.jinja')


def _picture(path: str) -> np.ndarray:
    """A picture file as RGB, at most 320 pixels high."""
    image = cv2.imread(path)
    if image is None:
        raise FileNotFoundError(f'{path}, named by the rankings, can not be read')
    height = image.shape[0]
    if height > 320:
        image = cv2.resize(image, None, fx=320 / height, fy=320 / height)
    return image[..., ::-1]


def _text_of(rankings: dict, image: int) -> str:
    """The first text of an image."""
    return rankings['texts'][rankings['owner'].index(image)]


def _show(rankings: dict, image: int, pictures: bool) -> Shown:
    name = rankings['images'][image]
    return Shown(to_uri(_picture(name)) if pictures else '', name, _text_of(rankings, image))


def _images_of_text(rankings: dict, image: int, pictures: bool) -> Example:
    best = rankings['images_of_text'][rankings['owner'].index(image)][:3]
    found = [(_show(rankings, i, pictures), i == image) for i in best]
    return Example(_text_of(rankings, image), found)


def _texts_of_image(rankings: dict, image: int, pictures: bool) -> Example:
    best = rankings['texts_of_image'][image][:3]
    found = [(rankings['texts'][t], rankings['owner'][t] == image) for t in best]
    return Example(_show(rankings, image, pictures), found)


def _draw_scales(file: Path) -> list[str]:
    """What LayerScaleStatsHook wrote, if it did."""
    records = json.loads(file.read_text()) if file.is_file() else []
    return [to_svg(figure) for figure in draw_scales(records)]


def _draw_sketches(model: nn.Module, texts: list[str], words: int = 8) -> list[str]:
    """The words of a hundred texts in one partition, the frequent ones named, and in three."""
    assigned, tokens = assign_words(model, evenly_spaced(texts, 100))
    if assigned is None:
        return []
    counts = Counter(t for t in tokens if t.isalpha() and t not in FUNCTION_WORDS)
    frequent = [word for word, _ in counts.most_common(words)]
    figures = draw_words(assigned[:, 0], tokens, frequent), draw_partitions(assigned[:, :3])
    return [to_svg(figure) for figure in figures]


def _draw_heat_maps(
    model: nn.Module, encode: Encode, rankings: dict, shown: list[int]
) -> list[HeatMaps]:
    """Heat maps of four words each; nothing for a model without a matching head."""
    if 'itm' not in model.heads:
        return []
    return [
        _draw_heat_map(model, encode, rankings['images'][image], _text_of(rankings, image))
        for image in shown
    ]


def _draw_heat_map(model: nn.Module, encode: Encode, path: str, text: str) -> HeatMaps:
    image, encoded = encode([path], [text])
    words, whole = grad_cam(model, image.tokens, encoded.tokens)
    anchors = anchor_maps(model, image.tokens, encoded.tokens)
    picture = _picture(path)
    tokenizer = model.data_preprocessor.tokenizer
    ids = model.data_preprocessor.tokenize([text])[0][0]
    pieces = tokenizer.convert_ids_to_tokens(ids.tolist())
    drawn = []
    for place in choose_words(pieces, words[0]):
        located = ''
        if anchors is not None:
            share = anchors[0][0, place].float().mean(-1)
            located = to_uri(mark_cells(picture, share.cpu().numpy()))
        heat = to_uri(lay_over(picture, words[0, place].float().cpu().numpy()))
        drawn.append((pieces[place], heat, located))
    whole_map = to_uri(lay_over(picture, whole[0].float().cpu().numpy()))
    return HeatMaps(to_uri(picture), text, whole_map, drawn)


def choose_words(pieces: list[str], maps: torch.Tensor, count: int = 4) -> list[int]:
    """Places of the words that matter most to the match, in the order of the text.

    Args:
        pieces: word pieces of a text, with special ones.
        maps: (1 + N, h, w).
        count: at most so many.
    """
    first = {}
    for place, piece in enumerate(pieces):
        if piece[0] not in '[#' and piece.isalpha() and piece not in FUNCTION_WORDS:
            first.setdefault(piece, place)
    places = sorted(first.values(), key=lambda place: -float(maps[place].sum()))
    return sorted(places[:count])

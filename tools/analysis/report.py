"""Writes the report of a run: curves, metrics, examples, heat maps or sketches, config.

    python tools/test.py CONFIG CHECKPOINT --cfg-options \\
        test_cfg.save_rankings=work_dirs/pretrain_shapes/rankings.json
    python tools/analysis/report.py work_dirs/pretrain_shapes [--layer -1]

With minimal pairs, a radar of the skills of the model:

    python tools/test.py configs/acerpe/skills_shapes.py CHECKPOINT \\
        --metrics work_dirs/pretrain_shapes/skills.json

With the curves of deletion_curves.py, how fast a match is lost with the patches that explain it:

    python tools/analysis/deletion_curves.py CONFIG CHECKPOINT \\
        --out work_dirs/pretrain_shapes/deletion.json

With the instances of the test images (those of the embedded world are found), how well the maps of
words find the objects that they name.

The report is one self-contained file, WORK_DIR/report.html; an existing one is overwritten.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from shlex import join

from mmengine.config import Config, ConfigDict
from torch import nn

from xmodal.apis import Inferencer, load_model
from xmodal.apis.location import measure_location
from xmodal.arguments import accepted_parameters
from xmodal.build_functions import find_component
from xmodal.checkpoint_file import read_checkpoint
from xmodal.datasets.base import evenly_spaced
from xmodal.engine.errors import run_or_explain
from xmodal.engine.launch import read_config
from xmodal.engine.work_dir import config_and_checkpoint
from xmodal.errors import ConfigError
from xmodal.evaluation.first_captions import encode_first_captions
from xmodal.evaluation.queries import CHECKPOINT, checkpoint_name, queries_file
from xmodal.fields import is_number, read_object
from xmodal.files import reads
from xmodal.registry import DATASETS, FUNCTIONS, LOOPS
from xmodal.visualization.anchors import find_position
from xmodal.visualization.report import write_report

IMAGES = 500  # whose words the maps are compared on, a few seconds on a CPU


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('work_dir', type=Path, help='folder of a run that was trained and tested')
    parser.add_argument('--checkpoint', type=Path, help='default: the last one of the run')
    parser.add_argument('--rankings', type=Path, help='default: WORK_DIR/rankings.json')
    parser.add_argument('--skills', type=Path, help='default: WORK_DIR/skills.json, if it is there')
    parser.add_argument(
        '--deletion', type=Path, help='default: WORK_DIR/deletion.json, if it is there'
    )
    parser.add_argument(
        '--layer',
        type=int,
        help='fusion layer of the heat maps, counted from 0; -1 is the last, as in Fig. 4 of '
        'ACE-RPE; default: the third of six, as in ALBEF, or the same relative depth',
    )
    parser.add_argument(
        '--instances',
        type=Path,
        nargs='+',
        help='COCO instances of the test images, for the AUC of the maps of words; default: those '
        'of the embedded world, if the run is tested on it',
    )
    return parser.parse_args()


@reads('rankings that test_cfg.save_rankings wrote')
def read_rankings(file: Path) -> dict:
    """The rankings of a test."""
    content = read_object(file)
    content.object('metrics')
    content.name('checkpoint', None)
    folds = content.object('folds', {})
    for prefix in folds:
        folds.integer(prefix, low=1)
    for key in ('images', 'texts', 'text_to_image', 'ranked_images'):
        content.items(key)
    return {key: content.get(key) for key in content}


@reads('metrics that tools/test.py --metrics wrote')
def read_skills(file: Path) -> tuple[dict[str, float], str | None]:
    """The metrics of a test of minimal pairs, and what was tested by the file beside them."""
    content = read_object(file)
    queries = queries_file(file)
    tested = checkpoint_name(queries) if queries.is_file() else None
    return {name: content.number(name) for name in content}, tested


@reads('curves that tools/analysis/deletion_curves.py --out wrote')
def read_deletion(file: Path) -> tuple[dict[str, list[float]], str | None]:
    """Mean curves by the name of what ranks the patches, and what was tested."""
    content = read_object(file)
    curves = {name: content.items(name) for name in content if name != CHECKPOINT}
    for name, curve in curves.items():
        if len(curve) < 2 or not all(map(is_number, curve)):
            raise content.error(name, 'a list of at least two numbers')
    return curves, content.name(CHECKPOINT, None)


def read_if_there(
    given: Path | None, default: Path, read: Callable[[Path], tuple], checkpoint: Path
) -> dict | None:
    """The content of a file that is given, or else of the default one if it is there."""
    file = given or default
    if not (given or default.is_file()):
        return None
    content, tested = read(file)
    require_tested(checkpoint, tested, file)
    return content


def find_files(work_dir: Path, args: argparse.Namespace) -> tuple[Path, Path, Path]:
    """Finds config, checkpoint and rankings of a run.

    Raises:
        FileNotFoundError: if a file is missing; the message says how to make it.
    """
    config, checkpoint = config_and_checkpoint(work_dir, args.checkpoint)
    rankings = args.rankings or work_dir / 'rankings.json'
    if not rankings.is_file():
        words = config, checkpoint, '--cfg-options', f'{rankings_key(config)}={rankings}'
        raise FileNotFoundError(
            f'{rankings} does not exist: write it with `xmodal test {join(map(str, words))}`'
        )
    return config, checkpoint, rankings


def require_tested(checkpoint: Path, tested: str | None, file: Path) -> None:
    """Refuses a report of a checkpoint with the results of another one.

    Args:
        checkpoint: of the report.
        tested: the one of the results; None where an earlier version did not write it.
        file: of the results.

    Raises:
        ConfigError: says which one was tested.
    """
    if tested and Path(tested).name != checkpoint.name:
        raise ConfigError(
            f'{file} has the results of {tested}, and the report is of {checkpoint}: give '
            f'--checkpoint {tested}, or write the file again with {checkpoint.name}'
        )


def rankings_key(config_file: Path) -> str:
    """Where a config says to which file the rankings of its test go.

    Raises:
        ConfigError: if no loop of its test writes rankings.
    """
    test = read_config(config_file).get('test_cfg') or {}
    loops = {f'test_cfg.loops.{name}': loop for name, loop in test.get('loops', {}).items()}
    for key, loop in {'test_cfg': test, **loops}.items():
        component = find_component((loop or {}).get('type', 'TestLoop'), LOOPS)
        if 'save_rankings' in accepted_parameters(component)[0]:
            return f'{key}.save_rankings'
    raise ConfigError(
        f'{config_file}: the report shows retrieval, and no loop of test_cfg is a RetrievalLoop. '
        '`xmodal export --to folder` draws the curves of a run of any task (training.png)'
    )


def has_images(dataset: ConfigDict, images: list[str]) -> bool:
    """Whether there are image files to show and to encode: features do without them."""
    if 'pipeline' not in dataset:
        return False
    loads_regions = any(step['type'] == 'LoadRegions' for step in dataset.pipeline)
    return not loads_regions or any(Path(image).is_file() for image in images)


def find_instances(dataset: ConfigDict) -> list[Path]:
    """The instances that make_shapes.py wrote for the split of a test; none of other data."""
    if not isinstance(dataset.get('ann_file'), str):
        return []
    name = f'instances_{Path(dataset.ann_file).stem}.json'
    file = Path(dataset.get('data_root', ''), 'coco', name)
    return [file] if file.is_file() else []


def measure_aucs(
    model: nn.Module, config: Config, instances: list[Path]
) -> dict[str, list[float]] | None:
    """The AUC of the maps of words on test images; None for a model without maps of words."""
    if not instances or not hasattr(model, 'relate'):
        return None
    if not (find_position(model).has_similarities or model.matching_head):
        return None
    dataset = DATASETS.build(config.test_dataloader.dataset)
    collate = find_component(config.test_dataloader.collate_fn.type, FUNCTIONS)
    rows = evenly_spaced(range(len(dataset)), IMAGES)
    captions = encode_first_captions(model, dataset, rows, collate, 'maps')
    location = measure_location(model, captions, instances)
    among = {f'{name},\n{location.scope}': values for name, values in location.among.items()}
    return {name: values.tolist() for name, values in (location.aucs | among).items()}


def main() -> None:
    """Writes the report."""
    args = parse_args()
    folder = args.work_dir
    config_file, checkpoint, rankings_file = find_files(folder, args)
    rankings = read_rankings(rankings_file)
    require_tested(checkpoint, rankings.get(CHECKPOINT), rankings_file)
    skills = read_if_there(args.skills, folder / 'skills.json', read_skills, checkpoint)
    deletion = read_if_there(args.deletion, folder / 'deletion.json', read_deletion, checkpoint)
    config = read_config(config_file, 'test_dataloader')
    if has_images(config.test_dataloader.dataset, rankings['images']):
        inferencer = Inferencer(config, checkpoint)
        model, encode = inferencer.model, inferencer.encode
    else:
        model, encode = load_model(config, checkpoint), None
    out = folder / 'report.html'
    instances = args.instances or find_instances(config.test_dataloader.dataset)
    write_report(
        folder,
        config,
        model,
        rankings,
        out,
        encode,
        layer=args.layer,
        skills=skills,
        deletion=deletion,
        aucs=measure_aucs(model, config, instances),
        epochs=read_checkpoint(checkpoint).get('meta', {}).get('epoch'),
    )
    print(f'{out}: open it in a browser')


if __name__ == '__main__':
    run_or_explain(main)

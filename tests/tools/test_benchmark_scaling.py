"""The measured scaling: rows, exponents and the bytes that two processes send, at tiny sizes."""

import json
import math
import multiprocessing
import sys

import pytest
from mmengine.config import Config

from tools.analysis import benchmark_scaling as tool
from xmodal.benchmark import TrainingStep, Worker, growth, sketches, workers
from xmodal.benchmark.figures import Figures
from xmodal.benchmark.pretraining import read_pretraining
from xmodal.benchmark.scaling import Training
from xmodal.benchmark.sgraf_training import build_model
from xmodal.benchmark.weak_scaling import Measured, report_processes
from xmodal.errors import ConfigError

SAF, SHAPES = 'configs/temde/saf_temde_f30k.py', 'configs/acerpe/pretrain_shapes.py'
ENDS = ('', ': exponent of time', ': memory', ': exponent of memory')


@pytest.fixture
def config(tmp_path):
    """A tiny file of pretrain_4m.py: 4 x 4 patches, 8 words, all heads and a teacher."""
    config = Config.fromfile('configs/acerpe/pretrain_4m.py')
    backbone = config.model.backbone
    backbone.image_encoder.update(
        image_size=64, patch_size=16, depth=1, embed_dim=32, num_heads=2, pretrained=False
    )
    backbone.text_encoder.config = dict(
        hidden_size=32, num_attention_heads=2, intermediate_size=32, vocab_size=100,
        max_position_embeddings=16,
    )  # fmt: skip
    backbone.text_encoder.num_layers = 1
    backbone.fusion.update(depth=1, embed_dims=32, num_heads=2)
    backbone.update(proj_dims=16)
    config.model.heads.mim.block = 32
    config.model.data_preprocessor.max_length = 8
    config.model.queue_length = 8
    config.dump(tmp_path / 'tiny.py')
    return str(tmp_path / 'tiny.py')


@pytest.fixture
def call(monkeypatch, tmp_path):
    """Calls the tool, and returns its figures by key."""

    def run(*line):
        file = tmp_path / 'figures.json'
        words = ['benchmark_scaling.py', *line, '--json', str(file)]
        monkeypatch.setattr(sys, 'argv', list(map(str, words)))
        tool.main()
        return {figure['key']: figure for figure in json.loads(file.read_text())['figures']}

    return run


class Local:
    """A worker whose object is in this process."""

    def __init__(self, build, *args):
        self.step = build(*args)

    def call(self, method):
        return getattr(self.step, method)()

    def close(self):
        pass


@pytest.fixture
def in_this_process(monkeypatch):
    """Steps are taken here, and nothing changes how this process allocates memory."""
    monkeypatch.setattr(growth, 'Worker', Local)
    monkeypatch.setattr(workers, 'Worker', Local)  # of close_and_measure
    monkeypatch.setattr(TrainingStep, 'memory', lambda step: step() or 0.5)


@pytest.fixture
def imported_once(monkeypatch):
    """Processes of workers begin with all modules, which take longer to import than to use here."""
    context = multiprocessing.get_context('forkserver')
    context.set_forkserver_preload(['xmodal.models', 'xmodal.datasets', 'xmodal.engine.sharding'])
    monkeypatch.setattr(workers, 'get_context', lambda _: context)


class Quadratic:
    """Seconds grow with the square of the length, memory with the batch."""

    def __init__(self, sizes):
        self.sizes = sizes

    def own_seconds(self):
        return 0.5 * self.sizes['batch'] * self.sizes['length'] ** 2

    def memory(self):
        return 0.25 * self.sizes['batch']


def test_exponents_of_known_growth(in_this_process):
    base, sizes = {'batch': 2, 'length': 10}, {'batch': [1, 2, 4], 'length': [20]}
    rows = growth.measure_growth(Quadratic, base, sizes, repeats=2)
    assert [(row.what, row.size) for row in rows] == [('batch', 1), ('batch', 4), ('length', 20)]
    for row, expected in zip(rows, (1, 1, 2), strict=True):
        assert row.exponents == pytest.approx([expected] * 2)
    assert [row.memory_exponent for row in rows] == pytest.approx([1, 1, 0])


def test_the_exponent_is_that_of_each_round():
    row = growth.Growth('batch', 8, 2, [4.0, 16.0], [1.0, 1.0], 3.0, 1.5)
    assert row.exponents == pytest.approx([1, 2]) and row.memory_exponent == pytest.approx(0.5)


def test_a_step_of_every_size(config, call, in_this_process, capsys):
    figures = call('sizes', config, '--repeats', 1, '--factors', 0.5, 2)
    sizes = ('batch 1', 'batch 4', 'image size 32', 'image size 128', 'words 4', 'words 16')
    base = {'step, base', 'step, base: memory'}
    assert figures.keys() == base | {f'step, {size}{end}' for size in sizes for end in ENDS}
    assert figures['step, base']['rounds'] == 6 and figures['step, base']['value'] > 0
    assert 'base: batch 2, image size 64, words 8' in ' '.join(capsys.readouterr().out.split())


def test_training_and_scoring_of_every_sketch(call, in_this_process, monkeypatch):
    monkeypatch.setattr(sketches, 'WIDTH', 16)
    built = []

    def build(config, width, **sizes):
        built.append(sizes)
        return build_model(config, width, **sizes)

    monkeypatch.setattr(sketches, 'build_model', build)
    figures = call('sketches', SAF, '--batch-size', 2, '--repeats', 1, '--factors', 0.5)
    base, *others = [dict(partitions=n, centroids=k) for n, k in ((16, 8), (8, 8), (16, 4))]
    # For training and for scoring; each takes turns, and then a step for the memory.
    assert built == 2 * [base, others[0], others[0], others[1], others[1], base]
    sizes = ('partitions 8', 'centroids 4')
    names = {f'{part}, {size}' for part in ('training', 'scoring') for size in sizes}
    assert {f'{name}{end}' for name in names for end in ENDS} < figures.keys()


def test_two_processes_send_what_sums_by_hand_say(config, call, imported_once):
    """Both halves of a ring of two: all gradients with DDP, half of them with FSDP."""
    figures = call('processes', config, '--repeats', 1)
    _, model = read_pretraining(config)
    shapes = [p.shape for name, p in model.named_parameters() if not name.startswith('teacher')]
    finite = 4  # one number: whether the loss is finite on all ranks
    parallel = sum(4 * shape.numel() for shape in shapes) + finite
    # FSDP divides the first axis, and fills it up to an even number.
    even = sum(4 * (n + n % 2) * math.prod(rest) for n, *rest in (s or [1] for s in shapes))
    pairs = 2 * (2 * 16 * 4 + 2 * 8)  # both embeddings of width 16, and both numbers

    def sent(name, kind):
        return round(figures[f'{name}: sent, {kind}']['value'] * 1e6)

    assert [sent('1 process', kind) for kind in ('gradients', 'vectors', 'weights')] == [0, 0, 0]
    assert sent('2 processes, DDP', 'gradients') == parallel
    assert sent('2 processes, FSDP', 'gradients') == even / 2 + finite
    assert sent('2 processes, DDP', 'weights') == 0 < sent('2 processes, FSDP', 'weights')
    for name in ('2 processes, DDP', '2 processes, FSDP'):
        assert sent(name, 'vectors') == pairs
        assert figures[f'{name}: vectors, calculated']['value'] * 1e6 == pytest.approx(pairs)
        assert figures[f'{name}: memory at the peak']['value'] > 0
    calculated = figures['2 processes, DDP: gradients, calculated']['value']
    assert calculated * 1e6 == pytest.approx(parallel - finite)


def test_columns_of_the_processes():
    training = Training(parameters=1000, teacher=0, largest=10, width=4, flops=0, batch=6)
    nothing = dict.fromkeys(('sums', 'vectors', 'weights'), 0.0)
    rows = [
        Measured(1, False, [1.0, 2.0, 3.0], [1.0], nothing, 1.0, 2.0),
        Measured(2, False, [4.0], [2.0], nothing | {'sums': 5e6}, 1.0, 2.0),
    ]
    figures = Figures('x')
    table = report_processes('', training, rows, figures)
    cells = {key: values for key, *values in zip(*(c.cells for c in table.columns), strict=True)}
    assert cells['efficiency, x'] == ['1.000', '0.500']
    assert cells['efficiency by CPU seconds, x'] == ['1.000', '0.500']
    assert cells['pairs of a process, a second'] == ['3.000', '1.500']
    assert cells['sent, gradients, MB'] == ['0.000', '5.000']
    assert figures.figures[0]['rounds'] == 3


def step_of(sizes):
    raise ValueError(sizes)


def test_a_process_that_ends_is_a_sentence(imported_once):
    worker = Worker(step_of, {})
    with pytest.raises(RuntimeError, match=r'has ended, see above.*exit code 1'):
        worker.call('own_seconds')


@pytest.mark.parametrize(
    ('line', 'message'),
    [
        (f'sizes {SAF}', 'saf_temde_f30k.py: expected a pre-training config'),
        (f'sizes {SHAPES}', '--factors: 48 words, expected 2 to 32'),
        (f'sizes {SHAPES} --factors 0.6', '--factors: image size 57, expected a multiple of 16'),
        (f'sizes {SHAPES} --factors 0.4', '--factors: batch 2 becomes 0, expected 1'),
        (f'sketches {SAF} --factors 1', '--factors: partitions stays 16, expected another size'),
        (f'sketches {SHAPES}', 'model.similarity.global_pooling.pooling is None, expected'),
        (f'processes {SHAPES} --units Blok', r"--units names \['Blok'\]"),
    ],
)
def test_wrong_options_are_named(call, line, message):
    with pytest.raises(ConfigError, match=message):
        call(*line.split())

"""Times a pre-training step of each position against `none`, at the sizes of a config.

    python tools/analysis/benchmark_pretrain.py configs/acerpe/pretrain_4m.py --batch-size 4

Each variant lives in a process of its own, so that its peak memory is its own; the processes take
turns, one step each, so that a drift of the machine's speed hits all alike. Time ratios are medians
of the turns' ratios. Model FLOP utilisation is against a large matrix product timed in the same run
(only multiplications by matrices are counted as FLOPs).
"""

import argparse
import resource
import statistics
import tempfile
import time
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

import torch
from mmengine.config import Config
from mmengine.logging import MMLogger
from rich.console import Console
from rich.table import Table
from torch.utils.flop_counter import FlopCounterMode
from tqdm import tqdm

from xmodal.engine.errors import run_or_explain
from xmodal.engine.launch import ShowDefaults, read_config
from xmodal.registry import MODELS, register_all
from xmodal.structures import ImageTextBatch

WARM_UP = 2


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=ShowDefaults
    )
    parser.add_argument('config', help='a pre-training config')
    parser.add_argument(
        '--positions',
        nargs='+',
        default=['none', 'ace_rpe'],
        help="the first is what the others are compared with; the config's own keeps its settings",
    )
    parser.add_argument('--batch-size', type=int, default=4, help='pairs of a step')
    parser.add_argument('--words', type=int, default=30, help='length of a text, [CLS] included')
    parser.add_argument('--repeats', type=int, default=9, help='turns counted, after a warm-up')
    parser.add_argument('--amp', action='store_true', help='bfloat16 autocast')
    return parser.parse_args()


def build_model(config: Config, position: str) -> torch.nn.Module:
    """The config's model with another position, random weights and a stand-in vocabulary."""
    model = config.model
    if model.backbone.position.type != position:
        model.backbone.position = dict(type=position)
    with tempfile.TemporaryDirectory() as folder:
        vocabulary = Path(folder, 'vocab.txt')
        vocabulary.write_text('[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nword\n')
        model.data_preprocessor.tokenizer.pretrained = str(vocabulary)
        return MODELS.build(model)


def random_batch(config: Config, size: int, words: int, device: str) -> ImageTextBatch:
    """Noise of the config's shape; every word is real."""
    side = config.model.backbone.image_encoder.image_size
    ids = torch.arange(size, device=device)
    return ImageTextBatch(
        images=torch.randn(size, 3, side, side, device=device),
        input_ids=torch.randint(5, 100, (size, words), device=device),
        attention_mask=torch.ones(size, words, dtype=torch.bool, device=device),
        image_ids=ids,
        text_ids=ids,
        text_image_ids=ids,
    )


class Step:
    """One training step of one variant."""

    def __init__(self, args: argparse.Namespace, position: str) -> None:
        MMLogger.get_instance('benchmark', log_level='ERROR')
        register_all()
        torch.manual_seed(0)
        self.device = 'cuda' if torch.cuda.is_available() else 'cpu'
        config = read_config(args.config)
        self.model = build_model(config, position).to(self.device).train()
        self.model.distillation_weight = 0.4
        online = [p for p in self.model.parameters() if p.requires_grad]
        self.optimizer = torch.optim.AdamW(online, lr=1e-5)
        self.batch = random_batch(config, args.batch_size, args.words, self.device)
        self.amp = args.amp

    def __call__(self) -> None:
        with torch.autocast(self.device, torch.bfloat16, enabled=self.amp):
            losses = self.model(self.batch, mode='loss')
        self.optimizer.zero_grad()
        sum(value for name, value in losses.items() if 'loss' in name).backward()
        self.optimizer.step()
        self.model.update_momentum()
        if self.device == 'cuda':
            torch.cuda.synchronize()

    def peak_memory(self) -> float:
        """Largest memory so far, in GiB: of the device, or of this process on a CPU."""
        if self.device == 'cuda':
            return torch.cuda.max_memory_allocated() / 2**30
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def work(args: argparse.Namespace, position: str, pipe: Connection) -> None:
    """A variant's process: answers 'step', 'flops', 'memory' until 'end'."""
    step = Step(args, position)
    while (request := pipe.recv()) != 'end':
        if request == 'step':
            start = time.perf_counter()
            step()
            pipe.send(time.perf_counter() - start)
        elif request == 'flops':
            with FlopCounterMode(display=False) as counter:
                step()
            pipe.send(counter.get_total_flops())
        else:
            pipe.send(step.peak_memory())


def ask(pipe: Connection, request: str) -> float:
    """Sends a request to a variant's process and waits for the answer."""
    pipe.send(request)
    return pipe.recv()


def matrix_rate(amp: bool, size: int = 4096) -> float:
    """FLOP/s of a square matrix product in the step's number format."""
    device = 'cuda' if torch.cuda.is_available() else 'cpu'
    dtype = torch.bfloat16 if amp else torch.float32
    a, b = (torch.randn(size, size, device=device, dtype=dtype) for _ in range(2))
    seconds = []
    for _ in range(4):
        start = time.perf_counter()
        a @ b
        if device == 'cuda':
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
    return 2 * size**3 / min(seconds)


def measure(args: argparse.Namespace) -> dict[str, dict]:
    """Step seconds of every turn, FLOPs and peak memory of each variant."""
    context = get_context('spawn')
    pipes, processes = {}, []
    for position in args.positions:
        pipes[position], other = context.Pipe()
        process = context.Process(target=work, args=(args, position, other), daemon=True)
        process.start()
        processes.append(process)
    results = {position: {'seconds': []} for position in args.positions}
    for turn in tqdm(range(WARM_UP + args.repeats), desc='turns'):
        for position, pipe in pipes.items():
            seconds = ask(pipe, 'step')
            if turn >= WARM_UP:
                results[position]['seconds'].append(seconds)
    for position, pipe in pipes.items():
        results[position]['memory'] = ask(pipe, 'memory')  # before the counter adds to it
        results[position]['flops'] = ask(pipe, 'flops')
        pipe.send('end')
    for process in processes:
        process.join()
    return results


def print_table(args: argparse.Namespace, results: dict[str, dict], rate: float) -> None:
    """One row a variant, each beside the first."""
    base = results[args.positions[0]]
    table = Table(title=f'{args.config}, batch {args.batch_size}, {args.words} words')
    for heading in (
        'position',
        'step s',
        'time',
        'peak GiB',
        'memory',
        'TFLOP',
        'FLOPs',
        'pairs/s',
        'MFU',
    ):
        table.add_column(heading, justify='left' if heading == 'position' else 'right')
    for position, result in results.items():
        seconds = statistics.median(result['seconds'])
        pairs = zip(result['seconds'], base['seconds'], strict=True)
        slower = statistics.median(own / other for own, other in pairs)
        table.add_row(
            position,
            f'{seconds:.3f}',
            f'x {slower:.3f}',
            f'{result["memory"]:.2f}',
            f'x {result["memory"] / base["memory"]:.3f}',
            f'{result["flops"] / 1e12:.3f}',
            f'x {result["flops"] / base["flops"]:.3f}',
            f'{args.batch_size / seconds:.2f}',
            f'{result["flops"] / seconds / rate:.1%}',
        )
    Console(width=120).print(table)


def main() -> None:
    """Measures and prints."""
    args = parse_args()
    rate = matrix_rate(args.amp)
    print_table(args, measure(args), rate)


if __name__ == '__main__':
    run_or_explain(main)

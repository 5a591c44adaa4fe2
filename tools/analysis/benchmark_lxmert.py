"""Times a pre-training step of LXMERT against transformers' LxmertForPreTraining, of one size.

    python tools/analysis/benchmark_lxmert.py configs/lxmert/pretrain_released.py --batch-size 8

Both see the same noise with the same words, regions and losses hidden or counted, draw what they
hide alike, and take a step of the same optimizer. Each lives in a process of its own; the processes
take turns, one step each, so that a drift of the machine's speed hits both alike. Ratios are
medians of the turns' ratios. Memory is the peak of two more steps, each side in a fresh process; on
a CPU it is the whole process's, and freed memory goes back to the system at once, which takes time
and is therefore not timed.
"""

import argparse
import json
import os
import resource
import statistics
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

import torch
from mmengine.logging import MMLogger
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn
from tqdm import tqdm
from transformers import LxmertConfig, LxmertForPreTraining

from xmodal.engine.errors import run_or_explain
from xmodal.engine.launch import ShowDefaults, read_config
from xmodal.models.lxmert import LxmertPretrainer
from xmodal.registry import MODELS, register_all
from xmodal.structures import DataSample, ImageTextBatch, ObjectLabels, Regions

WARM_UP = 2
SIDES = ('transformers', 'xmodal')
IGNORED = -100  # by the cross-entropies of transformers' model


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=ShowDefaults
    )
    parser.add_argument('config', help='a pre-training config')
    parser.add_argument('--batch-size', type=int, default=8, help='pairs of a step')
    parser.add_argument('--regions', type=int, default=36, help='of an image')
    parser.add_argument('--words', type=int, default=20, help='length of a text, [CLS] included')
    parser.add_argument('--answers', type=int, default=9500, help='size of the answer table')
    parser.add_argument('--width', type=int, help="instead of the config's 768; heads are 64 wide")
    parser.add_argument('--vocabulary', type=int, default=30522, help='words of the text encoder')
    parser.add_argument('--repeats', type=int, default=7, help='turns counted, after a warm-up')
    parser.add_argument('--amp', action='store_true', help='bfloat16 autocast')
    return parser.parse_args()


def build_model(args: argparse.Namespace) -> LxmertPretrainer:
    """The config's model with random weights, a stand-in vocabulary and a stand-in table."""
    model = read_config(args.config).model
    backbone = model.backbone
    text = dict(backbone.text_encoder.get('config', {}), vocab_size=args.vocabulary)
    if args.width:
        sizes = dict(embed_dims=args.width, num_heads=args.width // 64)
        backbone.image_encoder.update(sizes)
        backbone.fusion.update(sizes)
        text.update(
            hidden_size=args.width,
            num_attention_heads=args.width // 64,
            intermediate_size=4 * args.width,
        )
    backbone.text_encoder.config = text
    with tempfile.TemporaryDirectory() as folder:
        vocabulary, answers = Path(folder, 'vocab.txt'), Path(folder, 'answers.json')
        vocabulary.write_text('[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nword\n')
        answers.write_text(json.dumps([f'answer {number}' for number in range(args.answers)]))
        model.data_preprocessor.tokenizer.pretrained = str(vocabulary)
        model.heads.answers.answer_list = str(answers)
        return MODELS.build(model)


def their_model(own: LxmertPretrainer) -> LxmertForPreTraining:
    """transformers' model of the same size."""
    backbone, objects = own.backbone, own.heads['objects']
    text = backbone.text_encoder.config
    return LxmertForPreTraining(
        LxmertConfig(
            vocab_size=text.vocab_size,
            hidden_size=text.hidden_size,
            num_attention_heads=text.num_attention_heads,
            intermediate_size=text.intermediate_size,
            l_layers=text.num_hidden_layers,
            x_layers=backbone.fusion.depth,
            r_layers=len(backbone.image_encoder.layers),
            visual_feat_dim=backbone.image_encoder.feature_dims,
            num_object_labels=objects.decoders['objects'].out_features,
            num_attr_labels=objects.decoders['attributes'].out_features,
            num_qa_labels=len(own.heads['answers'].table),
            hidden_dropout_prob=text.hidden_dropout_prob,
            attention_probs_dropout_prob=text.attention_probs_dropout_prob,
        )
    )


def random_batch(args: argparse.Namespace, own: LxmertPretrainer, device: str) -> ImageTextBatch:
    """Noise; every word and region is real."""
    shape, objects = (args.batch_size, args.regions), own.heads['objects']
    labels = ObjectLabels(
        torch.randint(objects.decoders['objects'].out_features, shape),
        torch.rand(shape),
        torch.randint(objects.decoders['attributes'].out_features, shape),
        torch.rand(shape),
    )
    features = own.backbone.image_encoder.feature_dims
    regions = Regions(
        torch.randn(*shape, features, device=device),
        torch.ones(shape, dtype=torch.bool, device=device),
        torch.rand(*shape, 4, device=device),
        ObjectLabels(*(x.to(device) for x in labels)),
    )
    ids = torch.arange(args.batch_size, device=device)
    words = (args.batch_size, args.words)
    return ImageTextBatch(
        regions,
        torch.randint(5, args.vocabulary, words, device=device),
        torch.ones(words, dtype=torch.bool, device=device),
        ids,
        ids,
        ids,
    )


class Step:
    """One training step of one side."""

    def __init__(self, args: argparse.Namespace, side: str) -> None:
        MMLogger.get_instance('benchmark', log_level='ERROR')
        register_all()
        torch.manual_seed(0)
        self.device = 'cuda' if torch.cuda.is_available() else 'cpu'
        own = build_model(args).to(self.device)
        self.batch = random_batch(args, own, self.device)
        self.samples = [DataSample() for _ in range(args.batch_size)]
        for sample in self.samples:
            sample.answers, sample.answer_weights = ['answer 1'], [1.0]
        self.heads = own.heads if side == 'transformers' else None
        self.special_ids, self.mask_id = own.special_ids, own.mask_id
        self.model: nn.Module = own
        if self.heads:
            self.model = their_model(own).to(self.device)
            own.backbone = None  # only the heads are needed, to draw what is hidden
        self.model.train()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-5)
        self.amp = args.amp

    def __call__(self) -> None:
        with torch.autocast(self.device, torch.bfloat16, enabled=self.amp):
            loss = self.their_loss() if self.heads else self.own_loss()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        if self.device == 'cuda':
            torch.cuda.synchronize()

    def own_loss(self) -> Tensor:
        """The sum of our losses."""
        logs = self.model(self.batch, self.samples, mode='loss')
        return sum(value for name, value in logs.items() if 'loss' in name)

    def their_loss(self) -> Tensor:
        """The sum of transformers' losses, of the same tasks."""
        ids = torch.arange(len(self.batch.image_ids), device=self.device)
        rows, matched = self.heads['matching'].draw(ids[:, None] == ids)
        texts = self.batch.input_ids[rows]
        hidden, words = self.heads['mlm'].mask(texts, self.special_ids, self.mask_id)
        masked, chosen = self.heads['objects'].mask(self.batch.regions)
        labels = self.batch.regions.labels
        return self.model(
            input_ids=hidden,
            attention_mask=self.batch.attention_mask[rows].long(),
            visual_feats=masked.features,
            visual_pos=masked.boxes,
            labels=texts.masked_fill(~words, IGNORED),
            obj_labels={
                'obj': (labels.objects, labels.object_confidences),
                'attr': (labels.attributes, labels.attribute_confidences),
                'feat': (self.batch.regions.features, chosen.float()),
            },
            matched_label=matched.long(),
            ans=torch.ones_like(ids).masked_fill(~matched, IGNORED),
        ).loss

    def peak_memory(self) -> float:
        """Largest memory so far, in GiB: of the device, or of this process on a CPU."""
        if self.device == 'cuda':
            return torch.cuda.max_memory_allocated() / 2**30
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def work(args: argparse.Namespace, side: str, pipe: Connection) -> None:
    """A side's process: takes a step for each 'step' until 'end'."""
    step = Step(args, side)
    while pipe.recv() != 'end':
        start = time.perf_counter()
        step()
        pipe.send(time.perf_counter() - start)


def measure_memory(args: argparse.Namespace, side: str) -> float:
    """Peak GiB of the process that calls it, after two steps."""
    step = Step(args, side)
    step()
    step()
    return step.peak_memory()


def measure(args: argparse.Namespace) -> dict[str, dict]:
    """Step seconds of every turn and peak memory of each side."""
    context = get_context('spawn')
    pipes, processes = {}, []
    for side in SIDES:
        pipes[side], other = context.Pipe()
        process = context.Process(target=work, args=(args, side, other), daemon=True)
        process.start()
        processes.append(process)
    results = {side: {'seconds': []} for side in SIDES}
    for turn in tqdm(range(WARM_UP + args.repeats), desc='turns'):
        for side, pipe in pipes.items():
            pipe.send('step')
            seconds = pipe.recv()
            if turn >= WARM_UP:
                results[side]['seconds'].append(seconds)
    for pipe in pipes.values():
        pipe.send('end')
    for process in processes:
        process.join()
    os.environ['MALLOC_MMAP_THRESHOLD_'] = str(2**16)  # of processes that start from here on
    for side in tqdm(SIDES, desc='memory'):
        with ProcessPoolExecutor(1, context) as pool:
            results[side]['memory'] = pool.submit(measure_memory, args, side).result()
    return results


def print_table(args: argparse.Namespace, results: dict[str, dict]) -> None:
    """One row a side, ours beside theirs."""
    theirs = results[SIDES[0]]
    size = f'batch {args.batch_size}, {args.regions} regions, {args.words} words'
    table = Table(title=f'{args.config}, {size}')
    for heading in ('', 'step s', 'times as fast', 'peak GiB', 'memory', 'pairs/s'):
        table.add_column(heading, justify='right' if heading else 'left')
    for side, result in results.items():
        seconds = statistics.median(result['seconds'])
        pairs = zip(theirs['seconds'], result['seconds'], strict=True)
        table.add_row(
            side,
            f'{seconds:.3f}',
            f'x {statistics.median(other / own for other, own in pairs):.3f}',
            f'{result["memory"]:.2f}',
            f'x {result["memory"] / theirs["memory"]:.3f}',
            f'{args.batch_size / seconds:.2f}',
        )
    Console(width=120).print(table)


def main() -> None:
    """Measures and prints."""
    args = parse_args()
    print_table(args, measure(args))


if __name__ == '__main__':
    run_or_explain(main)

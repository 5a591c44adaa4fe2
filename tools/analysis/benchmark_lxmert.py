"""Times a pre-training step of LXMERT against LxmertForPreTraining of transformers.

    python tools/analysis/benchmark_lxmert.py configs/lxmert/pretrain_released.py --batch-size 8

Both models have the same size, get the same random inputs, mask words and regions in the same way,
have the same losses and use the same optimizer. Each runs in its own process, in alternating
rounds of one step; ratios are medians over the rounds. Memory is the peak of two more steps, for
each side in a new process. On a CPU it is the memory of the whole process, and freed memory is
returned to the system at once; that costs time, so these steps are not timed.
"""

import argparse
import json
import os
import statistics
import tempfile
from functools import partial
from pathlib import Path

import torch
from rich.console import Console
from torch import Tensor, nn
from transformers import LxmertConfig, LxmertForPreTraining

from xmodal.benchmark import (
    TrainingStep,
    Worker,
    alternate,
    default_device,
    make_parser,
    make_table,
    median_ratio,
    write_placeholder_vocabulary,
)
from xmodal.engine.command_line import at_least
from xmodal.engine.errors import run_or_explain
from xmodal.engine.launch import read_config
from xmodal.engine.memory import recompute_gelu
from xmodal.models.lxmert import LxmertPretrainer
from xmodal.registry import MODELS, register_all
from xmodal.structures import DataSample, ImageTextBatch, ObjectLabels, Regions

SIDES = ('transformers', 'xmodal')
IGNORE_INDEX = -100  # of the cross-entropies of transformers


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser, count = make_parser(__doc__), dict(type=at_least(1))
    parser.add_argument('config', help='a pre-training config')
    parser.add_argument('--batch-size', **count, default=8, help='pairs of a step')
    parser.add_argument('--regions', **count, default=36, help='regions of an image')
    parser.add_argument('--words', **count, default=20, help='length of a text, [CLS] included')
    parser.add_argument('--answers', **count, default=9500, help='size of the answer table')
    parser.add_argument('--width', **count, help="instead of the config's 768; heads are 64 wide")
    parser.add_argument('--vocabulary', **count, default=30522, help='words of the text encoder')
    parser.add_argument('--repeats', **count, default=7, help='rounds that count, after a warm-up')
    parser.add_argument('--amp', action='store_true', help='bfloat16 autocast')
    return parser.parse_args()


def build_model(args: argparse.Namespace) -> LxmertPretrainer:
    """Builds the model of the config with random weights, a placeholder vocabulary and answers."""
    model = read_config(args.config, 'model').model
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
        answers = Path(folder, 'answers.json')
        answers.write_text(json.dumps([f'answer {index}' for index in range(args.answers)]))
        model.data_preprocessor.tokenizer.pretrained = write_placeholder_vocabulary(folder)
        model.heads.answers.answer_list = str(answers)
        return MODELS.build(model)


def build_transformers_model(ours: LxmertPretrainer) -> LxmertForPreTraining:
    """Builds the model of transformers at the same size."""
    backbone, objects = ours.backbone, ours.heads['objects']
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
            num_qa_labels=len(ours.heads['answers'].table),
            hidden_dropout_prob=text.hidden_dropout_prob,
            attention_probs_dropout_prob=text.attention_probs_dropout_prob,
        )
    )


def random_batch(args: argparse.Namespace, ours: LxmertPretrainer, device: str) -> ImageTextBatch:
    """Makes a batch of random inputs without padding."""
    shape, objects = (args.batch_size, args.regions), ours.heads['objects']
    labels = ObjectLabels(
        torch.randint(objects.decoders['objects'].out_features, shape),
        torch.rand(shape),
        torch.randint(objects.decoders['attributes'].out_features, shape),
        torch.rand(shape),
    )
    features = ours.backbone.image_encoder.feature_dims
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


class Step(TrainingStep):
    """A training step of one side.

    Args:
        args: command line.
        side: one of ``SIDES``.
    """

    def __init__(self, args: argparse.Namespace, side: str) -> None:
        register_all()
        torch.manual_seed(0)
        self.device = default_device()
        ours = build_model(args).to(self.device)
        self.batch = random_batch(args, ours, self.device)
        self.samples = [DataSample() for _ in range(args.batch_size)]
        for sample in self.samples:
            sample.answers, sample.answer_weights = ['answer 1'], [1.0]
        self.ours, self.is_ours = ours, side != 'transformers'
        self.model: nn.Module = ours
        if not self.is_ours:
            self.model = build_transformers_model(ours).to(self.device)
            ours.backbone = None  # only the heads are needed, for the masking
        else:
            recompute_gelu(ours)  # as the runner does
        self.model.train()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-5)
        self.amp = args.amp

    def __call__(self) -> None:
        with torch.autocast(self.device, torch.bfloat16, enabled=self.amp):
            loss = self.xmodal_loss() if self.is_ours else self.transformers_loss()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def xmodal_loss(self) -> Tensor:
        """Computes the sum of the losses of our model."""
        losses = self.model(self.batch, self.samples, mode='loss')
        return sum(value for name, value in losses.items() if 'loss' in name)

    def transformers_loss(self) -> Tensor:
        """Computes the sum of the losses of transformers, for the same tasks."""
        regions, shown = self.batch.images, self.ours.show(self.batch)
        masked, matched = shown.batch, shown.matched
        labels = regions.labels
        return self.model(
            input_ids=masked.input_ids,
            attention_mask=masked.attention_mask.long(),
            visual_feats=masked.images.features,
            visual_pos=masked.images.boxes,
            labels=shown.input_ids.masked_fill(~shown.masked_words, IGNORE_INDEX),
            obj_labels={
                'obj': (labels.objects, labels.object_confidences),
                'attr': (labels.attributes, labels.attribute_confidences),
                'feat': (regions.features, shown.masked_regions.float()),
            },
            matched_label=matched.long(),
            ans=torch.ones_like(matched.long()).masked_fill(~matched, IGNORE_INDEX),
        ).loss


def measure(args: argparse.Namespace) -> dict[str, dict]:
    """Measures the seconds of every round and the peak memory of each side."""
    workers = {side: Worker(Step, args, side) for side in SIDES}
    timers = {side: partial(worker.call, 'seconds') for side, worker in workers.items()}
    seconds = alternate(timers, args.repeats)
    for worker in workers.values():
        worker.close()
    os.environ['MALLOC_MMAP_THRESHOLD_'] = str(2**16)  # for processes started from here on
    return {
        side: {'seconds': seconds[side], 'memory': measure_memory(args, side)} for side in SIDES
    }


def measure_memory(args: argparse.Namespace, side: str) -> float:
    """Returns the peak memory of a new process after two steps, in GiB."""
    worker = Worker(Step, args, side)
    for _ in range(2):
        worker.call('seconds')
    memory = worker.call('peak_memory')
    worker.close()
    return memory


def print_table(args: argparse.Namespace, results: dict[str, dict]) -> None:
    """Prints one row for each side, compared with transformers."""
    base = results[SIDES[0]]
    size = f'batch size {args.batch_size}, {args.regions} regions, {args.words} words'
    headings = ('', 'step s', 'speed-up', 'peak GiB', 'memory', 'pairs/s')
    table = make_table(f'{args.config}, {size}', *headings)
    for side, result in results.items():
        seconds = statistics.median(result['seconds'])
        table.add_row(
            side,
            f'{seconds:.3f}',
            f'x {median_ratio(base["seconds"], result["seconds"]):.3f}',
            f'{result["memory"]:.2f}',
            f'x {result["memory"] / base["memory"]:.3f}',
            f'{args.batch_size / seconds:.2f}',
        )
    Console(width=120).print(table)


def main() -> None:
    """Measures and prints."""
    args = parse_args()
    read_config(args.config, 'model')  # before any process starts
    print_table(args, measure(args))


if __name__ == '__main__':
    run_or_explain(main)

"""The models that a benchmark of LXMERT compares, and a batch for them.

Sizes are those of its command line: ``config``, ``width``, ``vocabulary``, ``answers``, ``peer``,
``batch_size``, ``regions`` and ``words``.
"""

import json
import tempfile
from argparse import Namespace
from pathlib import Path

import torch
from torch import nn
from transformers import LxmertConfig, LxmertForPreTraining

from xmodal.benchmark import lxmert_peer
from xmodal.benchmark.script import write_placeholder_vocabulary
from xmodal.engine.launch import read_config
from xmodal.models.lxmert import LxmertPretrainer
from xmodal.registry import MODELS
from xmodal.structures import ImageTextBatch, ObjectLabels, Regions


def build_model(args: Namespace) -> LxmertPretrainer:
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


def build_other(args: Namespace, ours: LxmertPretrainer) -> nn.Module:
    """Builds the model that ours is compared with, at the same size."""
    backbone, objects = ours.backbone, ours.heads['objects']
    text, answers = backbone.text_encoder.config, len(ours.heads['answers'].table)
    names = ('vocab_size', 'hidden_size', 'num_attention_heads', 'intermediate_size')
    names += ('hidden_dropout_prob', 'attention_probs_dropout_prob')
    sizes = {name: getattr(text, name) for name in names}
    depths = {
        'l_layers': text.num_hidden_layers,
        'x_layers': backbone.fusion.depth,
        'r_layers': len(backbone.image_encoder.layers),
    }
    if args.peer:
        return lxmert_peer.load(args.peer, sizes, depths, answers)
    return LxmertForPreTraining(
        LxmertConfig(
            **sizes,
            **depths,
            visual_feat_dim=backbone.image_encoder.feature_dims,
            num_object_labels=objects.decoders['objects'].out_features,
            num_attr_labels=objects.decoders['attributes'].out_features,
            num_qa_labels=answers,
            visual_loss_normalizer=1 / 0.15,  # 6.67 by default, which is rounded
        )
    )


def random_batch(args: Namespace, ours: LxmertPretrainer, device: str) -> ImageTextBatch:
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

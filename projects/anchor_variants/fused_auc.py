"""Do the tokens that fusion layers return find what words mean? The AUC of Eq. 3 between them.

    python projects/anchor_variants/fused_auc.py CONFIG CHECKPOINT INSTANCES

Layer 0 is the outputs of the encoders.
"""

import argparse
from statistics import fmean

import torch
from torch import nn

from xmodal.apis import load_model
from xmodal.build_functions import find_component
from xmodal.engine.errors import run_or_explain
from xmodal.engine.launch import read_config
from xmodal.evaluation.first_captions import encode_first_captions
from xmodal.evaluation.location import (
    location_auc,
    read_objects,
    words_on_objects,
)
from xmodal.registry import DATASETS, FUNCTIONS
from xmodal.structures import Tokens

IMAGES = 500


def tokens_by_layer(model: nn.Module, image: Tokens, text: Tokens) -> list[tuple[Tokens, Tokens]]:
    """Image and text tokens, as the encoders and then each fusion layer return them."""
    tokens = [(image, text)]

    def keep(layer: nn.Module, inputs: tuple, outputs: tuple) -> None:
        tokens.append((outputs[0].tokens, outputs[1].tokens))

    handles = [layer.register_forward_hook(keep) for layer in model.backbone.fusion.layers]
    model.fuse(image, text)
    for handle in handles:
        handle.remove()
    return tokens


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('config')
    parser.add_argument('checkpoint')
    parser.add_argument('instances', help="COCO's instances of the test images")
    return parser.parse_args()


@torch.no_grad()
def main() -> None:
    """Prints the mean over the words, of the mean similarity of the groups, layer by layer."""
    args = parse_args()
    config = read_config(args.config, 'test_dataloader')
    model, objects = load_model(config, args.checkpoint), read_objects(args.instances)
    dataset = DATASETS.build(config.test_dataloader.dataset)
    collate = find_component(config.test_dataloader.collate_fn.type, FUNCTIONS)
    first = int(model.backbone.image_encoder.has_cls)
    aucs = [[] for _ in range(model.backbone.fusion.depth + 1)]
    images = range(min(IMAGES, len(dataset)))
    for batch, _, image, text in encode_first_captions(model, dataset, images, collate, 'images'):
        layers = [model.relate(*pair).similarity for pair in tokens_by_layer(model, image, text)]
        for row, word, on_object, _ in words_on_objects(model, batch, image, objects):
            for of_layer, similarity in zip(aucs, layers, strict=True):
                scores = similarity[row, first : first + len(on_object), 1 + word].mean(-1)
                of_layer.append(float(location_auc(scores, on_object)))
    for layer, of_layer in enumerate(aucs):
        print(f'layer {layer}: {fmean(of_layer):.3f}')


if __name__ == '__main__':
    run_or_explain(main)

"""A random test set of retrieval with encoded images."""

import torch
from torch import nn
from torch.nn.functional import normalize

from xmodal.benchmark.sgraf_costs import caption_lengths
from xmodal.engine.loops.encoded_gallery import EncodedGallery
from xmodal.structures import PackedTexts, Tokens

WORDS = 30  # of the longest text


@torch.no_grad()
def random_gallery(
    model: nn.Module, num_images: int, captions: int, device: str, own_embeddings: bool
) -> EncodedGallery:
    """Images of noise, which are encoded, and texts of random word pieces.

    Args:
        model: that encodes the images.
        num_images: number of images.
        captions: number of texts of an image.
        device: of the model.
        own_embeddings: whether the ITC embeddings are those of the model; otherwise those of
            matching pairs are a little alike, so that recalls are neither 0 nor 100.
    """
    side, count = model.backbone.image_encoder.image_size, num_images * captions
    images = [
        model.encode_image(torch.randn(1, 3, side, side, device=device)) for _ in range(num_images)
    ]
    lengths = torch.tensor(caption_lengths('coco', count)).clamp(max=WORDS)
    mask = torch.arange(WORDS) < lengths[:, None]
    texts = PackedTexts.from_padded(torch.randint(5, 100, mask.shape), mask)
    if own_embeddings:
        image_embeddings = torch.cat([image.embedding for image in images]).cpu()
        text_embeddings = model.encode_text(*texts.to(device).pad()).embedding.cpu()
    else:
        image_embeddings = torch.randn(num_images, 16)
        text_embeddings = image_embeddings.repeat_interleave(captions, 0)
        text_embeddings = text_embeddings + 1.5 * torch.randn(count, 16)
    tokens = [image.tokens for image in images]
    return EncodedGallery(
        Tokens(torch.cat([x.embeddings for x in tokens]), grid_size=tokens[0].grid_size),
        texts,
        normalize(image_embeddings),
        normalize(text_embeddings),
        text_counts=torch.full((num_images,), captions),
        sample_indices=torch.arange(num_images),
        image_ids=list(range(num_images)),
        image_names=[f'image {number}' for number in range(num_images)],
        captions=[f'text {number}' for number in range(count)],
        image_rows=torch.arange(num_images),
    )

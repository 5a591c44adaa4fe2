"""A pre-training step with repeated images and texts, and a queue that is not full yet."""

import math

import torch
from torch.nn.functional import normalize

from xmodal.structures import EMPTY, Encoded, ImageTextBatch, Keys, PretrainStep, Tokens

# Samples 0 and 2 show one image, 1 and 3 share one caption; the queue holds both again.
IMAGE_IDS, TEXT_IDS = [1, 2, 1, 3], [10, 11, 12, 11]
QUEUE_IMAGE_IDS, QUEUE_TEXT_IDS = [3, 9, 1, EMPTY, EMPTY], [13, 12, 10, EMPTY, EMPTY]
FILLED_KEYS = range(7)  # the last two entries of the queue are empty


def random_embeddings(count, width=8):
    return normalize(torch.randn(count, width), dim=-1)


def make_step(distillation_weight=0.4):
    """Four pairs with nine keys; the embeddings of the batch are leaves of the graph."""
    mask = torch.arange(5)[None] < torch.tensor([[5], [4], [5], [3]])
    image = Encoded(Tokens(torch.randn(4, 7, 6)), random_embeddings(4).requires_grad_())
    text = Encoded(Tokens(torch.randn(4, 5, 6), mask), random_embeddings(4).requires_grad_())
    image_ids, text_ids = torch.tensor(IMAGE_IDS), torch.tensor(TEXT_IDS)
    batch_keys = Keys(random_embeddings(4), random_embeddings(4), image_ids, text_ids)
    queue_embeddings = [torch.cat([random_embeddings(3), torch.zeros(2, 8)]) for _ in range(2)]
    queue = Keys(*queue_embeddings, torch.tensor(QUEUE_IMAGE_IDS), torch.tensor(QUEUE_TEXT_IDS))
    return PretrainStep(
        batch=ImageTextBatch(None, None, mask, image_ids, text_ids, image_ids),
        samples=None,
        image=image,
        text=text,
        teacher_image=image,
        teacher_text=text,
        batch_keys=batch_keys,
        keys=batch_keys.join(queue),
        distillation_weight=distillation_weight,
    )


def is_positive(sample, key):
    """Whether a key shares the image or the text with a sample."""
    image_ids, text_ids = IMAGE_IDS + QUEUE_IMAGE_IDS, TEXT_IDS + QUEUE_TEXT_IDS
    return image_ids[key] == IMAGE_IDS[sample] or text_ids[key] == TEXT_IDS[sample]


def directions(step):
    """Queries, the teacher's queries, candidates and partners: from images, then from texts."""
    keys, teacher = step.keys, step.batch_keys
    yield (
        step.image.embedding,
        teacher.image_embeddings,
        keys.text_embeddings,
        teacher.text_embeddings,
    )
    yield (
        step.text.embedding,
        teacher.text_embeddings,
        keys.image_embeddings,
        teacher.image_embeddings,
    )


def literal_softmax(row):
    total = math.fsum(math.exp(x) for x in row)
    return [math.exp(x) / total for x in row]

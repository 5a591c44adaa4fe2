"""Scenes of the embedded world, and which of their objects a region shows."""

import cv2
import numpy as np
import torch
from torchvision.ops import box_iou

from xmodal.datasets.shapes.record import Record
from xmodal.datasets.shapes.render import render_scene
from xmodal.datasets.shapes.scene import sample_scene

SIZE = 96


def make_record(index):
    """A scene with the boxes of its objects."""
    scene = sample_scene(5, 'train', index)
    _, masks = render_scene(scene, SIZE)
    boxes = [cv2.boundingRect(mask.astype(np.uint8)) for mask in masks]
    return Record(scene, (), tuple(boxes), (), SIZE, '')


def shown_objects(record, regions):
    """For each region the index of the object that it fits, None for part of one or for none."""
    boxes = torch.tensor(record.boxes)
    boxes[:, 2:] += boxes[:, :2]
    best = box_iou(torch.tensor(regions), boxes).max(1)
    pairs = zip(best.values.tolist(), best.indices.tolist(), strict=True)
    return [index if overlap > 0.6 else None for overlap, index in pairs]

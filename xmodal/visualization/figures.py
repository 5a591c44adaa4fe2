"""Figures made of images: heat maps on them, and their form in a page; no matplotlib."""

import base64

import cv2
import numpy as np


def shrink(image: np.ndarray, side: int) -> np.ndarray:
    """An image (H, W, 3) with sides of at most ``side`` pixels, and of 1 at least."""
    scale = side / max(image.shape[:2])
    if scale >= 1:
        return image
    height, width = (max(1, round(length * scale)) for length in image.shape[:2])
    return cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA)


def to_uri(image: np.ndarray) -> str:
    """Encodes an RGB image (H, W, 3), uint8, as a data URI: small images as PNG, others as JPEG."""
    suffix, mime = ('.png', 'png') if image.shape[0] <= 128 else ('.jpg', 'jpeg')
    options = [cv2.IMWRITE_JPEG_QUALITY, 85] if suffix == '.jpg' else []
    _, data = cv2.imencode(suffix, image[..., ::-1], options)
    return f'data:image/{mime};base64,{base64.b64encode(data.tobytes()).decode()}'


def overlay_heatmap(image: np.ndarray, heat: np.ndarray) -> np.ndarray:
    """Overlays a heat map (h, w), divided by its maximum, on an image (H, W, 3)."""
    height, width = image.shape[:2]
    heat = heat / heat.max() if heat.max() > 0 else heat
    smooth = cv2.resize(heat.astype(np.float32), (width, height), interpolation=cv2.INTER_CUBIC)
    smooth = smooth.clip(0, 1)
    colours = cv2.applyColorMap((smooth * 255).astype(np.uint8), cv2.COLORMAP_INFERNO)[..., ::-1]
    weight = 0.65 * smooth[..., None] + 0.15
    return (image * (1 - weight) + colours * weight).astype(np.uint8)


def highlight_patches(image: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Dims an image except for some patches of its grid; their weights (h, w) lie in 0…1."""
    height, width = image.shape[:2]
    weights = weights.astype(np.float32)
    brightness = cv2.resize(weights, (width, height), interpolation=cv2.INTER_NEAREST)
    return (image * (0.2 + 0.8 * brightness[..., None])).astype(np.uint8)

"""ONNX files of the parts of a model, and their 8-bit versions."""

import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from torch import nn

from xmodal.export.towers import parts_of

_TYPES = {f'tensor({name})': name for name in ('uint8', 'int64', 'bool')}
_TYPES['tensor(float)'] = 'float32'
_MISSING = "ONNX needs more packages: `pip install 'xmodal[onnx]'` ({})"


def export_onnx(model: nn.Module, folder: str | Path, int8: bool = False) -> list[Path]:
    """Writes ``image.onnx``, ``text.onnx`` and, with a fusion encoder, ``matcher.onnx``.

    The first axis (images, texts, pairs) and the number of words may have any length. Beside them
    are the tokenizer (``tokenizer.json``) and ``preprocessing.json``.

    Args:
        model: in eval mode; see :func:`parts_of`.
        folder: where to; it may exist.
        int8: also write ``*.int8.onnx``, with the weights of linear layers in 8 bits.

    Returns:
        The ONNX files.

    Raises:
        RuntimeError: when the packages of ONNX are missing.
        ValueError: when the model has no such parts.
    """
    parts = parts_of(model)  # first: no package helps a model that has none
    try:
        import onnxscript  # noqa: F401
    except ModuleNotFoundError as error:
        raise RuntimeError(_MISSING.format(error)) from error
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for name, part in parts.items():
        program = torch.onnx.export(
            part.program(),
            kwargs=part.example,
            input_names=list(part.example),
            output_names=part.outputs,
            dynamo=True,
            verbose=False,
        )
        files.append(folder / f'{name}.onnx')
        program.save(files[-1], external_data=False)
    preprocessor = model.data_preprocessor
    preprocessor.tokenizer.backend_tokenizer.save(str(folder / 'tokenizer.json'))
    size = getattr(model, 'backbone', model).image_encoder.image_size
    content = {'image_size': size, 'max_length': preprocessor.max_length}
    (folder / 'preprocessing.json').write_text(json.dumps(content), encoding='utf-8')
    return files + [quantize(file) for file in files] if int8 else files


def quantize(file: Path) -> Path:
    """Writes ``NAME.int8.onnx`` beside ``NAME.onnx``: weights in 8 bits, activations as they come.

    Convolutions stay: their 8-bit form is slower on most CPUs.
    """
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from onnxruntime.quantization.shape_inference import quant_pre_process

    out = file.with_suffix('.int8.onnx')
    with TemporaryDirectory() as folder:  # weights are transposed before: only constants are packed
        folded = Path(folder) / file.name
        quant_pre_process(file, folded, skip_symbolic_shape=True)
        kinds = ['MatMul', 'Gemm']
        # Signed weights overflow in the 16 bits of a processor with AVX2 but without VNNI.
        quantize_dynamic(folded, out, op_types_to_quantize=kinds, weight_type=QuantType.QUInt8)
    return out


class OnnxModel:
    """Runs the files that :func:`export_onnx` wrote.

    Args:
        folder: where they are.
        int8: run the 8-bit versions.
        threads: of a part; None for all cores.

    Raises:
        FileNotFoundError: when the folder has no such files.
        ModuleNotFoundError: when ``onnxruntime`` is missing.
    """

    def __init__(self, folder: str | Path, int8: bool = False, threads: int | None = None) -> None:
        try:
            from onnxruntime import InferenceSession, SessionOptions
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(_MISSING.format(error)) from error
        options = SessionOptions()
        if threads is not None:
            options.intra_op_num_threads = threads
        suffix = '.int8.onnx' if int8 else '.onnx'
        if not (image := Path(folder) / f'image{suffix}').is_file():
            option = ' --int8' if int8 else ''
            raise FileNotFoundError(
                f'{image} is missing: `xmodal export --to onnx{option}` makes it'
            )
        self._parts = {
            name: InferenceSession(file, options, providers=['CPUExecutionProvider'])
            for name in ('image', 'text', 'matcher')
            if (file := Path(folder) / f'{name}{suffix}').is_file()
        }

    def run(self, part: str, inputs: dict[str, np.ndarray]) -> Sequence[np.ndarray]:
        """The outputs of a part, ``'image'``, ``'text'`` or ``'matcher'``, for its inputs.

        Raises:
            ValueError: when the model has no such part, as one without a fusion encoder, or an
                input has another type or shape.
        """
        if part not in self._parts:
            raise ValueError(f'the model has no {part}: its parts are {", ".join(self._parts)}')
        for given in self._parts[part].get_inputs():
            found, kind = inputs[given.name], _TYPES[given.type]
            # An axis of any length has a name.
            fits = len(given.shape) == found.ndim and all(
                isinstance(n, str) or n == m for n, m in zip(given.shape, found.shape, strict=True)
            )
            if not fits or kind != found.dtype:
                raise ValueError(
                    f'{part}: {given.name} are {found.dtype} {found.shape}, expected {kind} '
                    f'({", ".join(map(str, given.shape))})'
                )
        return self._parts[part].run(None, inputs)

    def encode_images(self, images: np.ndarray) -> Sequence[np.ndarray]:
        """Pixels uint8 (B, 3, H, W) to tokens (B, 1 + M, D) and embeddings (B, d)."""
        return self.run('image', {'images': images})

    def encode_texts(self, input_ids: np.ndarray, mask: np.ndarray) -> Sequence[np.ndarray]:
        """Ids and mask int64 (B, N) to tokens (B, N, D) and embeddings (B, d)."""
        return self.run('text', {'input_ids': input_ids, 'attention_mask': mask})

    def match(
        self, image_tokens: np.ndarray, text_tokens: np.ndarray, mask: np.ndarray
    ) -> np.ndarray:
        """Tokens of pairs, row by row, to the logits of 'no' and 'yes', (B, 2)."""
        inputs = {'image_tokens': image_tokens, 'text_tokens': text_tokens}
        return self.run('matcher', {**inputs, 'attention_mask': mask})[0]

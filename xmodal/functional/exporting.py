"""Whether a program is traced for another runtime."""

import torch


def is_exporting() -> bool:
    """Whether ``torch.export`` traces, for ONNX say; not so while ``torch.compile`` does.

    In PyTorch 2.11 ``torch.compiler.is_exporting`` alone is True in all that Dynamo traces.
    """
    return not torch.compiler.is_dynamo_compiling() and torch.compiler.is_exporting()

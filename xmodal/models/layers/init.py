"""Initial weights of linear layers."""

from torch import nn


def init_linear(module: nn.Module, embed_dims: int) -> None:
    """Draws the linear layers in a module as BERT's: N(0, 0.02²), biases 0.

    0.02 is BERT's at its width of 768; narrower layers start larger, as 1 / √width does. LoRA's
    matrices stay as they are: their product is zero before training.
    """
    for name, layer in module.named_modules():
        if isinstance(layer, nn.Linear) and 'lora_' not in name:
            nn.init.normal_(layer.weight, std=0.02 * (768 / embed_dims) ** 0.5)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)


def xavier_linear(in_features: int, out_features: int, bias: bool = True) -> nn.Linear:
    """A linear layer as SCAN and SGRAF initialise theirs: Xavier-uniform weights, zero bias.

    The entries of a squared difference are about 1e-3; PyTorch's bias would dominate them after
    normalising.
    """
    layer = nn.Linear(in_features, out_features, bias)
    nn.init.xavier_uniform_(layer.weight)
    if bias:
        nn.init.zeros_(layer.bias)
    return layer

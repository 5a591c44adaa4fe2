# T-EMDE / SGR on the embedded world: minutes on two CPU cores.
_base_ = './saf_temde_shapes.py'

# With node 0 at full size SGR does not learn (docs/temde.md).
model = dict(
    similarity=dict(global_pooling=dict(layer_scale=0.01), reasoning=dict(type='SGR'))
)

# T-EMDE / SGR on the embedded world: minutes on two CPU cores.
_base_ = [
    '../_base_/models/sgraf_shapes.py',
    '../_base_/datasets/shapes_precomp.py',
    '../_base_/schedules/sgraf_shapes.py',
    '../_base_/default_runtime.py',
]

# With node 0 at full size SGR does not learn (docs/temde.md).
model = dict(
    similarity=dict(global_pooling=dict(layer_scale=0.01), reasoning=dict(type='SGR'))
)
# Mean negatives first: the hardest of a batch make an untrained model collapse at this rate.
custom_hooks = [dict(type='NegativesWarmupHook', epochs=1), dict(type='CollapseHook')]

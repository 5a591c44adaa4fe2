# T-EMDE / SGR on the embedded world: minutes on two CPU cores.
_base_ = [
    '../_base_/models/sgraf_shapes.py',
    '../_base_/datasets/shapes_precomp.py',
    '../_base_/schedules/sgraf_shapes.py',
    '../_base_/default_runtime.py',
]

model = dict(similarity=dict(reasoning=dict(type='SGR')))
# Mean negatives first: the hardest of a batch make an untrained model collapse at this rate.
custom_hooks = [dict(type='NegativesWarmupHook', epochs=1), dict(type='CollapseHook')]

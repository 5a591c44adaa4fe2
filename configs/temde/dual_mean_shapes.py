# A dual encoder on the embedded world: the mean of a token set → linear → cosine.
_base_ = [
    '../_base_/models/sgraf_shapes.py',
    '../_base_/datasets/shapes_precomp.py',
    '../_base_/schedules/sgraf_shapes.py',
    '../_base_/default_runtime.py',
]

model = dict(
    similarity=dict(
        _delete_=True,
        type='PooledSimilarity',
        image_pooling=dict(type='MeanPooling'),
        text_pooling=dict(type='MeanPooling'),
        proj_dims=128,
    ),
)
custom_hooks = [dict(type='NegativesWarmupHook', epochs=1), dict(type='CollapseHook')]
# Means of tokens learn slower than their comparison one by one.
train_cfg = dict(max_epochs=4)
optim_wrapper = dict(optimizer=dict(lr=1e-3))
param_scheduler = [dict(type='StepLR', gamma=0.1, step_size=3)]

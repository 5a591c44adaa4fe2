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
        vector_dims=128,
    ),
)
custom_hooks = [dict(type='NegativesWarmupHook', epochs=1), dict(type='CollapseHook')]

# Retrieval on the embedded world with T-EMDE's sketches, fine-tuned from pretrain_shapes_temde.py.
_base_ = './retrieval_shapes.py'

sketch = dict(type='TEMDE', partitions=16, centroids=8, inner_dims=8)
model = dict(backbone=dict(image_pooling=sketch, text_pooling=sketch))
load_from = 'work_dirs/pretrain_shapes_temde/epoch_9.pth'

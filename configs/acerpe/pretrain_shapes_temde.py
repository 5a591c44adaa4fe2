# pretrain_shapes.py with T-EMDE's sketches of all patches and of all words in the place of [CLS] in
# the contrastive branch. Sizes are those of T-EMDE on Flickr30K (Sec. 4.3).
_base_ = './pretrain_shapes.py'

sketch = dict(type='TEMDE', partitions=16, centroids=8, inner_dims=8)
model = dict(backbone=dict(image_pooling=sketch, text_pooling=sketch))

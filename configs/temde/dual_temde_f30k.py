# A dual encoder with T-EMDE as its pooling, on Flickr30K: sketch → linear → cosine. The paper has
# none.
_base_ = './dual_gpo_f30k.py'

sketch = dict(_delete_=True, type='TEMDE', partitions=16, centroids=8, inner_dims=8)  # Sec. 4.3
model = dict(similarity=dict(image_pooling=sketch, text_pooling=sketch))

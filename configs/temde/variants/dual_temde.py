# The dual encoder with T-EMDE, with N and K of Sec. 4.3.
_base_ = '../dual_gpo_f30k.py'

model = dict(
    similarity=dict(
        image_pooling=dict(
            _delete_=True, type='TEMDE', partitions=16, centroids=8, inner_dims=8
        ),
        text_pooling=dict(_delete_=True, type='TEMDE', partitions=16, centroids=8, inner_dims=8),
    ),
)

# The dual encoder with the static EMDE, N and K as T-EMDE's. The linear layers after it learn; the
# encoders, which no gradient reaches, stay random projections.
_base_ = '../dual_gpo_f30k.py'

model = dict(
    similarity=dict(
        image_pooling=dict(_delete_=True, type='EMDE', partitions=16, bits=3),
        text_pooling=dict(_delete_=True, type='EMDE', partitions=16, bits=3),
    ),
)
find_unused_parameters = True

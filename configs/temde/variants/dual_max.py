# The dual encoder with MaxPooling.
_base_ = '../dual_gpo_f30k.py'

model = dict(
    similarity=dict(
        image_pooling=dict(_delete_=True, type='MaxPooling'),
        text_pooling=dict(_delete_=True, type='MaxPooling'),
    ),
)

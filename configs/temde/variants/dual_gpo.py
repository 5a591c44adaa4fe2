# The dual encoder with GPOPooling.
_base_ = '../dual_gpo_f30k.py'

model = dict(
    similarity=dict(
        image_pooling=dict(_delete_=True, type='GPOPooling'),
        text_pooling=dict(_delete_=True, type='GPOPooling'),
    ),
)

# GPO with BERT on Flickr30K: dual_gpo_f30k.py with a tenth of the learning rate for BERT.
_base_ = './dual_gpo_f30k.py'

model = dict(
    data_preprocessor=dict(tokenizer=dict(_delete_=True, pretrained='bert-base-uncased')),
    text_encoder=dict(
        _delete_=True, type='BertWordEncoder', embed_dims=1024, pretrained='bert-base-uncased'
    ),
)
optim_wrapper = dict(paramwise_cfg=dict(custom_keys={'text_encoder.bert.': dict(lr_mult=0.1)}))

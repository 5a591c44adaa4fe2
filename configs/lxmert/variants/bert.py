# Table 3, "BERT": the language encoder starts as the first nine layers of BERT.
_base_ = '../pretrain.py'

model = dict(backbone=dict(text_encoder=dict(pretrained='bert-base-uncased')))

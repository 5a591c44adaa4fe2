# As pretrain_4m.py, with CC12M: the 14M rows of Tables 1 to 5.
_base_ = './pretrain_4m.py'

train_dataloader = dict(dataset=dict(ann_file=[*_base_.ann_files_4m, 'albef/cc12m.json']))

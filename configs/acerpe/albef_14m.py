# As albef_4m.py, with CC12M: the data of ALBEF.pth, the released model of 14M images.
_base_ = './albef_4m.py'

train_dataloader = dict(dataset=dict(ann_file=[*_base_.ann_files_4m, 'albef/cc12m.json']))

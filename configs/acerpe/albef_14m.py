# As albef_4m.py, with CC12M: the data of ALBEF.pth, the released model of 14M images.
_base_ = './albef_4m.py'

train_dataloader = dict(
    dataset=dict(
        ann_file=[
            'albef/coco.json',
            'albef/vg.json',
            'albef/sbu.json',
            'albef/cc3m_train.json',
            'albef/cc3m_val.json',
            'albef/cc12m.json',
        ]
    )
)

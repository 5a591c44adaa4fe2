# As pretrain_4m.py, with CC12M: the 14M rows of Tables 1 to 5.
_base_ = './pretrain_4m.py'

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

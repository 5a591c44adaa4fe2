# ACE-RPE in LXMERT: pretrain_shapes.py with the centres of boxes for patches, one key.
_base_ = './pretrain_shapes.py'

work_dir = 'work_dirs/lxmert_pretrain_acerpe_shapes'
model = dict(backbone=dict(position=dict(type='AnchorRelativePosition')))

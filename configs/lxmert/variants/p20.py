# Table 4, "P20": no answers to questions; the questions stay as sentences of the other tasks.
_base_ = '../pretrain.py'

model = dict(heads=dict(answers=None))

# Tables 4 and 5, last rows: all five tasks, answers in the second half.
_base_ = '../pretrain.py'

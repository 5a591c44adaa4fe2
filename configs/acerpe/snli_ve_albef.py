# ALBEF itself on SNLI-VE: the layout of albef_4m.py, the recipe of snli_ve.py. A pre-trained file
# is converted and fine-tuned, or a fine-tuned one converted and tested.
#   python tools/model_converters/albef.py ALBEF.pth work_dirs/albef/snli_ve.pth \
#       --config configs/acerpe/snli_ve_albef.py
#   tools/dist_train.sh configs/acerpe/snli_ve_albef.py 8
_base_ = ['./snli_ve.py', '../_base_/models/albef_layout.py']

model = dict(_base_.albef_layout)
load_from = 'work_dirs/albef/snli_ve.pth'

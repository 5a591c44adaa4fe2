# ALBEF itself on VQA v2: the layout of albef_4m.py, the recipe of vqa_v2.py. Its authors' file
# vqa.pth is converted and tested, or a pre-trained one converted and fine-tuned.
#   python tools/model_converters/albef.py vqa.pth work_dirs/albef/vqa_v2.pth \
#       --config configs/acerpe/vqa_v2_albef.py
#   python tools/test.py configs/acerpe/vqa_v2_albef.py \
#       work_dirs/albef/vqa_v2.pth
_base_ = ['./vqa_v2.py', '../_base_/models/albef_layout.py']

model = dict(_base_.albef_layout)
load_from = 'work_dirs/albef/vqa_v2.pth'

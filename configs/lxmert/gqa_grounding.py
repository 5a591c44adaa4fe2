# GQA's grounding score. Testdev has no scene graphs, so it is a test on val, which this training
# leaves out, unlike gqa.py. The pre-training has seen val's images and questions (docs/lxmert.md).
#   python tools/train.py configs/lxmert/gqa_grounding.py
_base_ = './gqa.py'

work_dir = 'work_dirs/lxmert_gqa_grounding'
model = dict(report_attention=True)
train_dataloader = dict(dataset=dict(ann_file='gqa/train_balanced_questions.json'))
test_dataloader = dict(dataset=dict(ann_file='gqa/val_balanced_questions.json'))
test_evaluator = dict(
    choices='data/gqa/val_choices.json', scene_graphs='data/gqa/val_sceneGraphs.json'
)

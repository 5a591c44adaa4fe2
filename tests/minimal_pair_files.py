"""Tiny files in the layouts in which minimal pairs are published."""

SUGARCREPE = {
    '0': {
        'filename': '000000085329.jpg',
        'caption': 'A man at a laptop.',
        'negative_caption': 'A man at a table.',
    },
    '7': {'filename': 'b.jpg', 'caption': 'Two dogs', 'negative_caption': 'Two cats'},
}
RELATION = [
    {
        'image_id': '2322999', 'image_path': '2322999.jpg', 'relation_name': 'to the left of',
        'bbox_x': 1, 'bbox_y': 2, 'bbox_w': 5, 'bbox_h': 3,
        'true_caption': 'the dog is to the left of the cat',
        'false_caption': 'the cat is to the left of the dog',
    }
]  # fmt: skip
ATTRIBUTION = [
    {
        'image_id': '1', 'image_path': '1.jpg', 'attributes': ['white', 'open'],
        'obj1_name': 'door', 'obj2_name': 'cup',
        'bbox_x': 0, 'bbox_y': 0, 'bbox_w': 5, 'bbox_h': 3,
        'true_caption': 'the open door and the white cup',
        'false_caption': 'the white door and the open cup',
    }
]  # fmt: skip
ORDER = [
    {
        'image': 'val2014/COCO_val2014_000000391895.jpg',
        'caption_options': ['a man rides', 'man a rides', 'a man rides', 'rides man a', 'rides a'],
    }
]
WINOGROUND = {
    'id': 0, 'image_0': 'ex_0_img_0', 'image_1': 'ex_0_img_1',
    'caption_0': 'an old person kisses a young person',
    'caption_1': 'a young person kisses an old person',
    'tag': 'Adjective-Age', 'secondary_tag': '', 'num_main_preds': 1, 'collapsed_tag': 'Object',
}  # fmt: skip
VSR = {
    'image': '000000266622.jpg',
    'image_link': 'http://images.cocodataset.org/train2017/000000266622.jpg',
    'caption': 'The bowl is at the left side of the banana.',
    'label': 1,
    'relation': 'at the left side of',
    'annotator_id': 2,
    'vote_true_validator_id': '[13, 2, 1]',
}

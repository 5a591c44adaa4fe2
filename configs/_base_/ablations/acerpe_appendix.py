# The columns of Tables 6, 8 and 9: "the average recall", over R@1, R@5 and R@10, and reasoning.
text_recalls = ['i2t/R@1', 'i2t/R@5', 'i2t/R@10']
image_recalls = ['t2i/R@1', 't2i/R@5', 't2i/R@10']
columns = {
    'shapes': {
        'TR': ('retrieval', text_recalls),
        'IR': ('retrieval', image_recalls),
        'NLVR2': ('nlvr2', 'accuracy'),
    },
    '4m': {
        'F30K TR': ('flickr30k', text_recalls),
        'F30K IR': ('flickr30k', image_recalls),
        'COCO TR': ('coco', text_recalls),
        'COCO IR': ('coco', image_recalls),
        'NLVR2 dev': ('nlvr2_dev', 'accuracy'),
        'NLVR2 test': ('nlvr2', 'accuracy'),
    },
}
paper_columns = [
    'F30K TR', 'F30K IR', 'COCO TR', 'COCO IR', 'NLVR2 dev', 'NLVR2 test',
]

# Table 7 (Sec. A.2): λ of the anchor loss, the threshold δ, and the number of groups G. The
# paper's defaults are λ = 2, δ = 0.05, G = 8; pretrain_shapes.py has values of its own for λ of the
# token term and for G.
_base_ = '../../_base_/ablations/acerpe.py'

title = 'ACE-RPE, Table 7: hyper-parameters, average recall'

columns = {
    'shapes': {
        'TR': ('retrieval', ['i2t/R@1', 'i2t/R@5', 'i2t/R@10']),
        'IR': ('retrieval', ['t2i/R@1', 't2i/R@5', 't2i/R@10']),
    },
    '4m': {
        'COCO TR': ('coco', ['i2t/R@1', 'i2t/R@5', 'i2t/R@10']),
        'COCO IR': ('coco', ['t2i/R@1', 't2i/R@5', 't2i/R@10']),
    },
}

paper_columns = ['COCO TR', 'COCO IR']
rows = {
    'lambda_1': dict(label='λ = 1', paper=[85.9, 75.0]),
    'lambda_2': dict(label='λ = 2', paper=[87.7, 76.8]),
    'lambda_3': dict(label='λ = 3', paper=[87.6, 76.6]),
    'lambda_4': dict(label='λ = 4', paper=[87.5, 76.6]),
    'delta_0.01': dict(label='δ = 0.01', paper=[87.5, 76.5]),
    'delta_0.05': dict(label='δ = 0.05', paper=[87.7, 76.8]),
    'delta_0.1': dict(label='δ = 0.1', paper=[87.5, 76.7]),
    'delta_0.2': dict(label='δ = 0.2', paper=[87.6, 76.7]),
    'groups_1': dict(label='G = 1', paper=[87.1, 76.3]),
    'groups_4': dict(label='G = 4', paper=[87.6, 76.6]),
    'groups_8': dict(label='G = 8', paper=[87.7, 76.8]),
    'groups_16': dict(label='G = 16', paper=[87.7, 76.9]),
    'groups_32': dict(label='G = 32', paper=[87.6, 76.8]),
}

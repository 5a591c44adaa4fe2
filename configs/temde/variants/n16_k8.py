# Table 4: N = 16 partitions, K = 8 centroids.
_base_ = '../saf_temde_f30k.py'

model = dict(similarity=dict(global_pooling=dict(pooling=dict(partitions=16, centroids=8))))

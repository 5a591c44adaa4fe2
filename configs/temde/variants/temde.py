# Tables 1, 2 and 4, "T-EMDE", with N and K of Sec. 4.3.
_base_ = '../saf_temde_f30k.py'

# Tables 1 and 2, "ACE-RPE + L_ace": the method, and the reference of all other tables.
_base_ = '../pretrain_4m.py'

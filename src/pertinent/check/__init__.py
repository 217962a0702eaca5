"""Is removal in distribution for a model? (Hase et al. 2021, Sec. 5)"""

"""The public functions: explain, compare, evaluate, attack, benchmark and the catalogues."""

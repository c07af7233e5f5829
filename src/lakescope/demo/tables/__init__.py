"""The tables of the demo lake, one module per corner of the imagined company and its open data.

Each module has ``FACTS``, what it plants, and ``write``, which writes its tables. Order matters where a later module
uses keys of an earlier one.
"""

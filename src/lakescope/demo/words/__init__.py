"""Word lists the demo lake is made of: real names of places, elements and people, so that the lake reads like one.

Only names and codes are real. Every figure in the demo lake is invented.
"""

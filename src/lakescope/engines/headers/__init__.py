"""Names for columns that have none, borrowed from the tables of the lake that have them (spec-profiling 3).

``similar`` is the thesis' first phase, columns that share values; ``coherence`` its second, headers that go together.
``evidence`` adds what values look like, ``model`` turns everything into a probability, ``suggest`` answers.
"""

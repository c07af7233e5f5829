"""Answers to look at: summaries, charts, diagrams and maps, as text, HTML and Markdown."""

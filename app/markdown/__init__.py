"""Markdown whose every rendered character knows the source it comes from.

`MarkdownParser` turns text into blocks of runs, `mark_runs` cuts them by token, and
`DocumentWriter` puts them into a `QTextDocument`. Only the writer knows Qt.
"""

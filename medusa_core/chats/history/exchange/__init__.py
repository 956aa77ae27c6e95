"""Import and export: JSON, Markdown, HTML, and files of other programs."""

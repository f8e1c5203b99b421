"""README.md and the pages in docs/: their links, their code, and the site."""

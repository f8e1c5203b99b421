"""The programs to compare with: their environments, how to run them, and why their paths may differ."""

"""The peers: which they are, how their environments are made, and why their paths may differ."""

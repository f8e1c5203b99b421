"""The suites, one module each, with ``COUNT``, ``RUNS``, ``add_options(parser)`` and ``run(options, report)``."""

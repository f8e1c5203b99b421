"""The suites, a module each: ``COUNT``, ``RUNS``, ``add_options(parser)`` and ``run(options, report)``."""

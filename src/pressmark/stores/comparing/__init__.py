"""The comparison of two stores."""

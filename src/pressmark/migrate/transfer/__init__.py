"""The transfer of objects from the source to the destination."""

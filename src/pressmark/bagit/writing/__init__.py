"""Write bags: from a directory in place, or from files elsewhere, into a new directory."""

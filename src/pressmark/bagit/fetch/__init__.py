"""Complete bags: download the files that fetch.txt lists."""

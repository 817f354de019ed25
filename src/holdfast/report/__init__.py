"""Reports of results: pages, sentences and files for people and CI."""

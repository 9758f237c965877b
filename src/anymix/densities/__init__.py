"""How likely is this point under each source?  `fit`, `score_samples` in natural logs, `sample`."""

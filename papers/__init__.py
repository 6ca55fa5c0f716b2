"""Published experiments, rerun with the library as any user would: ``python -m papers NAME``, one package per paper."""

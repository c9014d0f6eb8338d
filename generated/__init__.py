"""Generated kernels, one package per architecture, made by `m3gen generate`."""

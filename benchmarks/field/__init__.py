"""vLLM's kernels beside m3gen's: what is compared, the floors, the rows on disk and the page made of them."""

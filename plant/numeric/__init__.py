"""Small fixed-size algebra and hash tables for kernels."""

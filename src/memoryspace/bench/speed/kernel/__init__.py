"""The memory space compared with a dict of bytes, a raw file and a raw engine."""

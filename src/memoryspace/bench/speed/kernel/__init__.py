"""The memory space measured beside a dict of bytes, a raw file and a raw engine."""

"""Compatibility with the agent runtime: its import paths for memory services and their schema.

These modules only re-export names of ``memoryspace.service``. A program written for the runtime
runs once it changes the root of its imports. Nothing else in the package depends on them.
"""

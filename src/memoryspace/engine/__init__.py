"""The places where the agent runtime has its memory services and their schema.

Nothing stands here: each module names what ``memoryspace.service`` has, so that a program written
for the runtime runs once the root of its imports is changed.
"""

"""The search index beside a heap: how it follows the objects, and how it is saved."""

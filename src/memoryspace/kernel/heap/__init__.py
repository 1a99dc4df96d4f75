"""The heap: an arena of bytes, the objects in it, and the ops that change them."""

"""The heap: bytes in an arena, the objects in them, and every change that can be made to them."""

"""Where content goes when it leaves the context: the contract, and archives in RAM and in files."""

from .base import Archive, Kept, Parcel, digest_of
from .files import FileArchive
from .ram import RAMArchive

__all__ = ["Archive", "FileArchive", "Kept", "Parcel", "RAMArchive", "digest_of"]

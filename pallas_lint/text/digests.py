"""Digests: cache keys of long texts, and signatures of files that this program wrote."""

from __future__ import annotations

try:
    # All that hashlib adds to it is OpenSSL's other digests, which take longer to load than a small file to lint.
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b


def digest(data: bytes) -> str:
    """32 hexadecimal digits."""
    return blake2b(data, digest_size=16).hexdigest()


def signature(data: bytes, key: bytes) -> str:
    """32 hexadecimal digits that only those know who have the key, of at most 64 bytes."""
    return blake2b(data, key=key, digest_size=16).hexdigest()

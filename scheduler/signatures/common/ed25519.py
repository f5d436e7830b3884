"""Ed25519 over the cryptography library, loaded when a key of that kind is used. A key is its raw 32 bytes; a private
one may have the public one behind it (64 bytes), as Standard Webhooks writes it."""

from __future__ import annotations


def signed(public: bytes, text: bytes, code: bytes) -> bool:
    """Whether `code` is the signature of `text`; False for a key that is none."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(public).verify(code, text)
    except (InvalidSignature, ValueError):
        return False
    return True


def sign(private: bytes, text: bytes) -> bytes:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.from_private_bytes(private[:32]).sign(text)


def public_of(private: bytes) -> bytes:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.from_private_bytes(private[:32]).public_key().public_bytes_raw()

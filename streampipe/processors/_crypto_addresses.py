"""Rules for addresses of Bitcoin and Ethereum, told from other text by their checksums."""

from __future__ import annotations

import hashlib

from streampipe.text import Rule

__all__ = ["CRYPTO_ADDRESSES", "keccak_256"]

_BEFORE = "(?<![A-Za-z0-9])"
_AFTER = "(?![A-Za-z0-9])"
_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_BECH32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_BECH32_SUMS = {1, 0x2BC830A3}  # of the first kind of address, and of those after it
_GENERATORS = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)

_MASK = (1 << 64) - 1
_RATE = 136  # bytes that a round of Keccak-256 takes in
_ROUNDS = 24


def _base58(text: str) -> int:
    """A version, the hash of a key, and the beginning of their own hash: 25 bytes in all."""
    number = 0
    for char in text:
        number = number * len(_BASE58) + _BASE58.index(char)
    if number.bit_length() > 200:  # noqa: PLR2004 - bits of 25 bytes
        return 0
    data = number.to_bytes(25, "big")
    # Each leading zero byte is written as a 1: an address has as many as it has such bytes.
    zeros = len(data) - len(data.lstrip(b"\0"))
    if zeros != len(text) - len(text.lstrip("1")):
        return 0
    digest = hashlib.sha256(hashlib.sha256(data[:-4]).digest()).digest()
    return len(text) if digest[:4] == data[-4:] else 0


def _bech32(text: str) -> int:
    """Its symbols, and those of the prefix, have a remainder that tells the kind of address."""
    prefix, symbols = text[:2].lower(), text[3:].lower()
    values = [ord(char) >> 5 for char in prefix] + [0] + [ord(char) & 31 for char in prefix]
    values += [_BECH32.index(char) for char in symbols]
    rest = 1
    for value in values:
        top = rest >> 25
        rest = (rest & 0x1FFFFFF) << 5 ^ value
        for bit, generator in enumerate(_GENERATORS):
            rest ^= generator * (top >> bit & 1)
    return len(text) if rest in _BECH32_SUMS else 0


def _ethereum(text: str) -> int:
    """Capitals, where both kinds of letter are used, are a checksum."""
    digits = text[2:]
    if digits in (digits.lower(), digits.upper()):
        return len(text)
    digest = keccak_256(digits.lower().encode()).hex()
    capitals = [digest[place] > "7" for place in range(len(digits))]
    right = all(
        char.isdigit() or char.isupper() is capital
        for char, capital in zip(digits, capitals, strict=True)
    )
    return len(text) if right else 0


def keccak_256(data: bytes) -> bytes:
    """The hash that Ethereum uses: SHA3-256 as it was before its padding was changed.

    >>> keccak_256(b"").hex()[:16]
    'c5d2460186f7233c'

    Args:
        data: at most 134 bytes, which one round takes in; an address has 40.
    """
    padded = (data + b"\x01").ljust(_RATE - 1, b"\0") + b"\x80"
    words = [int.from_bytes(padded[at : at + 8], "little") for at in range(0, _RATE, 8)]
    lanes = _permuted(words + [0] * (25 - len(words)))
    return b"".join(lane.to_bytes(8, "little") for lane in lanes[:4])


def _rotated(lane: int, by: int) -> int:
    by %= 64
    return (lane << by | lane >> (64 - by)) & _MASK


def _permuted(lanes: list[int]) -> list[int]:
    """Keccak's permutation of 25 words; the word at column x of row y has the index x + 5 * y."""
    register = 1  # the round constants come from a shift register
    for _ in range(_ROUNDS):
        columns = [
            lanes[x] ^ lanes[x + 5] ^ lanes[x + 10] ^ lanes[x + 15] ^ lanes[x + 20]
            for x in range(5)
        ]
        mixed = [columns[(x - 1) % 5] ^ _rotated(columns[(x + 1) % 5], 1) for x in range(5)]
        lanes = [lane ^ mixed[index % 5] for index, lane in enumerate(lanes)]
        x, y, moved = 1, 0, lanes[1]
        for step in range(24):
            x, y = y, (2 * x + 3 * y) % 5
            lanes[x + 5 * y], moved = (
                _rotated(moved, (step + 1) * (step + 2) // 2),
                lanes[x + 5 * y],
            )
        rows = [lanes[5 * y : 5 * y + 5] for y in range(5)]
        lanes = [
            row[x] ^ (~row[(x + 1) % 5] & row[(x + 2) % 5] & _MASK)
            for row in rows
            for x in range(5)
        ]
        for bit in range(7):
            if register & 1:
                lanes[0] ^= 1 << ((1 << bit) - 1)
            register = register << 1 ^ (0x171 if register & 0x80 else 0)
    return lanes


CRYPTO_ADDRESSES = (
    Rule("bitcoin-address", rf"{_BEFORE}[13][{_BASE58}]{{25,34}}{_AFTER}", "[ADDRESS]", _base58),
    Rule(
        "bitcoin-address",
        rf"{_BEFORE}(?:bc1[{_BECH32}]{{11,71}}|BC1[{_BECH32.upper()}]{{11,71}}){_AFTER}",
        "[ADDRESS]",
        _bech32,
    ),
    Rule("ethereum-address", rf"{_BEFORE}0x[0-9A-Fa-f]{{40}}{_AFTER}", "[ADDRESS]", _ethereum),
)
"""Bitcoin's in base58 and bech32, Ethereum's; those of one case alone have no checksum."""

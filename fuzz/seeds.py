#!/usr/bin/env python3
"""Writes seeds/<target>/: a few small inputs of our own for each fuzz target.

Standard library only; run it from anywhere, the output does not vary.
"""

from hashlib import sha256
from pathlib import Path

HERE = Path(__file__).resolve().parent


def head(major, n):
    """The shortest CBOR head."""
    if n < 24:
        return bytes([major << 5 | n])
    for extra, size in (24, 1), (25, 2), (26, 4), (27, 8):
        if n < 1 << 8 * size:
            return bytes([major << 5 | extra]) + n.to_bytes(size, "big")
    raise ValueError(n)


def cbor(value):
    """Just enough CBOR: numbers, bytes, text, lists, maps, tags, None, truth."""
    if value is None or isinstance(value, bool):
        return {False: b"\xf4", True: b"\xf5", None: b"\xf6"}[value]
    if isinstance(value, int):
        return head(0, value) if value >= 0 else head(1, -1 - value)
    if isinstance(value, bytes):
        return head(2, len(value)) + value
    if isinstance(value, str):
        return head(3, len(value.encode())) + value.encode()
    if isinstance(value, list):
        return head(4, len(value)) + b"".join(map(cbor, value))
    if isinstance(value, dict):
        return head(5, len(value)) + b"".join(cbor(k) + cbor(v) for k, v in value.items())
    tag, inner = value
    return head(6, tag) + cbor(inner)


def sign1(protected, unprotected, payload):
    """A COSE_Sign1 whose signature is 64 zero bytes."""
    return cbor((18, [cbor(protected), unprotected, payload, bytes(64)]))


KID = sha256(b"kid").digest()
NODE = sha256(b"node").digest()
CLAIMS = {1: "https://agent.example", 2: "urn:example:run:1", 6: 1_800_000_000}
STATEMENT = {1: -7, 3: "application/json", 4: KID, 15: CLAIMS}
LOG = {1: -7, 4: KID, 15: {1: "https://log.example", 2: "capstan.receipt.v1"}, 395: 1}

statement = sign1(STATEMENT, {}, b"{}")
inclusion = sign1(LOG, {396: {-1: [cbor([3, 1, [NODE, NODE]])]}}, None)
consistency = sign1(LOG, {396: {-2: [cbor([1, 3, [NODE, NODE]])]}}, None)
leaf = {1: [NODE, "ce:2.1:00", NODE], 2: [[True, NODE]]}
ccf = sign1(LOG | {395: 2}, {396: {-1: [cbor(leaf)]}}, None)
note = (
    "go.sum database tree\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n\n"
    "\u2014 sum.golang.org Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/"
    "Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=\n"
).encode()

SEEDS = {
    "cbor": [cbor(0), cbor(-1), cbor({1: [b"x", "y", None]}), cbor((1, 2)), b"\xf9\x3c\x00", cbor(STATEMENT)],
    "statement": [
        statement,
        sign1(STATEMENT | {1: -8}, {394: [inclusion]}, b"{}"),
        sign1({1: -7, 4: KID, 15: CLAIMS, 258: -16, 259: "text/plain"}, {}, NODE),
        sign1({1: -7, 15: CLAIMS, 34: [-16, NODE]}, {33: b"0"}, b""),
        sign1(STATEMENT, {}, None),
    ],
    "receipt": [inclusion, consistency, ccf],
    "checkpoint": [note, b"log.example+00000000+AQ=="],
    "tile_path": [
        b"tile/0/000",
        b"tile/entries/x001/x234/067.p/8",
        b"tile/63/000.p/1",
        b"\x00\x20" + NODE,
    ],
    "pca": [
        (HERE.parent / "src/profile/pca/conformance/t13_a.json").read_bytes(),
        (HERE.parent / "src/profile/pca/conformance/t13_b.json").read_bytes(),
        b'{"capsule_version":"1.0","proofs":[]}',
        b'{"now":"2026-04-10T12:00:00Z","brs_score":1e0,"brs_threshold":2,"ood":false,"merkle_proofs":[]}',
    ],
    "policy": [(HERE.parent / "policy" / f"{name}.toml").read_bytes() for name in ("issuers", "open")],
    "trust": [
        b'[[issuer]]\nname = "https://agent.example"\nkeys = []\nuntil = 2026-01-01T00:00:00Z\n',
        b'[[issuer]]\nname = "a"\nkeys = ["""-----BEGIN PUBLIC KEY-----\n'
        b"MCowBQYDK2VwAyEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n"
        b'-----END PUBLIC KEY-----"""]\n',
        b'[[anchor]]\nname = "a"\ncertificate = ""\neku = "1.3.6.1.5.5.7.3.3"\n',
        b'[[log]]\nname = "https://log.example"\nkeys = []\ncheckpoint = "log.example+00000000+AQ=="\n',
    ],
}
SEEDS["verify"] = SEEDS["statement"][:2] + SEEDS["receipt"] + SEEDS["checkpoint"][:1]

for target, inputs in SEEDS.items():
    directory = HERE / "seeds" / target
    directory.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(inputs):
        (directory / str(number)).write_bytes(data)

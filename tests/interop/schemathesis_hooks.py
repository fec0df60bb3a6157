"""Bodies for schemathesis: it knows JSON, the log speaks CBOR.

Registrations get a real statement now and then, so that the answers of
success are seen as well as those of failure.
"""

import schemathesis
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from hypothesis import strategies as st
from scitt_cose import build_signed_statement

SECRET = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))


def statement(number):
    """A statement of a throw-away key, another one for each number."""
    return build_signed_statement(
        b'{"number":%d}' % number,
        alg="EdDSA",
        private_key_pem=SECRET.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
        issuer="https://agent.example",
        subject="urn:example:schemathesis",
        content_type="application/json",
        kid=SECRET.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw),
    )


STATEMENTS = [statement(number) for number in range(16)]
one = st.sampled_from(STATEMENTS)
sequence = st.lists(one, max_size=4).map(b"".join)



@schemathesis.serializer("application/cose", "application/scitt-statement+cose", "application/cbor-seq")
def as_they_are(_context, value):
    """Bodies are bytes already."""
    return value if isinstance(value, bytes) else str(value).encode()


for media_type, valid in (
    ("application/cose", one),
    ("application/scitt-statement+cose", one),
    ("application/cbor-seq", sequence),
):
    schemathesis.openapi.media_type(media_type, st.one_of(valid, st.binary(max_size=256)))

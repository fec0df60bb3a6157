"""Registers a whole Agent Action Capsule and runs agent-action-capsule's
transparent-statement verifier on it.

usage: agent_action_capsule_client.py URL
"""

import hashlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from agent_action_capsule.transparent import verify_transparent
from capsule_emit import LocalKeypairSigner, seal
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from scitt_cose import attach_receipts

from scrapi import check, flip, log_key, pem, register


def main(url, home):
    signer = LocalKeypairSigner(home / "issuer.pem")
    capsule = seal(
        {"order": 1}, action="write_order", operator="example.org", developer="example.org",
        ledger=str(home / "capsule-ledger"), signer=signer, witness=False,
    ).capsule
    statement = signer.sign_cose_statement(
        json.dumps(capsule).encode(),
        content_type="application/agent-action-capsule+json",
        issuer="https://agent.example",
        subject=capsule["capsule_id"],
    )
    receipt, _ = register(url, statement)
    issuer = Ed25519PublicKey.from_public_bytes(bytes.fromhex(signer.key_id))
    leaf = hashlib.sha256(statement).hexdigest()
    for name, data in {
        "statement.cose": attach_receipts(statement, [receipt]),
        "issuer.pub": pem(issuer),
        "log.pub": pem(log_key(url, receipt)),
    }.items():
        (home / name).write_bytes(data)

    def verify(leaf):
        return verify_transparent(
            statement_path=home / "statement.cose", issuer_key_path=home / "issuer.pub",
            log_key_path=home / "log.pub", leaf_entry_hex=leaf,
        )

    report = verify(leaf)
    check("agent-action-capsule verifies the capsule", report.ok, report.substrate_errors)
    check("and calls it anchored", report.attestation_tier == "anchored")
    check("another leaf fails", not verify(flip(bytes.fromhex(leaf)).hex()).ok)
    run = subprocess.run(
        [sys.executable, "-m", "agent_action_capsule.cli", "verify", "statement.cose", "--transparent",
         "--issuer-key", "issuer.pub", "--log-key", "log.pub", "--leaf-entry-hex", leaf],
        cwd=home, capture_output=True, text=True,
    )
    check("the agent-action-capsule command agrees", run.returncode == 0, run.stdout + run.stderr)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as home:
        main(sys.argv[1].rstrip("/"), Path(home))

"""Seals agent actions with capsule-emit, the log under test as its witness,
and runs capsule-emit's own verifiers on the result.

usage: capsule_emit_client.py URL
"""

import base64
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from capsule_emit import seal
from capsule_emit.evidence_file import check_evidence_file
from capsule_emit.status import compute_status
from capsule_emit.witness import checkpoint_witness_states
from capsule_emit.witness_bindings import verify_witnesses
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from scrapi import check, directory, flip, log_key


def command(*arguments):
    """Runs the capsule-emit command; its first two words name the check."""
    run = subprocess.run([sys.executable, "-m", "capsule_emit.cli", *arguments], capture_output=True, text=True)
    check(f"capsule-emit {' '.join(arguments[:2])} exits 0", run.returncode == 0, run.stdout + run.stderr)


def act(ledger, number):
    """One sealed action; raises unless the witness gave a receipt."""
    return seal(
        {"order": number}, action="write_order", operator="example.org", developer="example.org",
        effect={"type": "write_order", "status": "dispatched"}, ledger=ledger, require_witness=True,
    )


def main(url, home):
    ledger, bundle_file = str(home / "capsule-ledger"), home / "bundle.json"
    os.environ["CAPSULE_WITNESS_URL"] = f"scrapi+{url}"

    capsule = act(ledger, 1)
    check("capsule-emit registered a checkpoint", capsule.witness_outcome == "witness_receipt_obtained")
    state = checkpoint_witness_states(ledger)[-1]
    [witness] = state.effective_witnesses.values()
    receipt = base64.b64decode(witness.receipt_b64)
    key = log_key(url, receipt)
    trusted = directory(url, key)

    def verified(witness=witness, cose=state.checkpoint_cose_hex, trusted=trusted):
        [verdict] = verify_witnesses(
            state.checkpoint, [witness], directory=trusted, checkpoint_cose_hex=cose
        ).receipts
        return verdict.verified, verdict.reason

    check("verify_witnesses accepts the receipt", *verified())
    status = compute_status(ledger, offline=True, witness_directory=trusted)
    check("the ledger grades as witnessed", status["latest_checkpoint"]["grade"] == "witnessed")
    command("verify", "--store", ledger)

    command("bundle", "--all", ledger, "-o", str(bundle_file))
    bundle = json.loads(bundle_file.read_text())
    bundle["checkpoint"]["witnesses"] = [witness.to_dict()]  # the producer leaves receipts out
    bundle_file.write_text(json.dumps(bundle))
    found = check_evidence_file(bundle, require_signature=True, witness_directory=trusted)
    check("the evidence bundle is VALID", found.verdict == "VALID", found.to_dict())
    check("its witness receipt passes", found.witness.status == "pass", found.witness_receipts)
    options = []
    if url.startswith("https://"):  # the command takes no directory with an http endpoint
        (home / "witnesses.json").write_text(json.dumps(trusted))
        options = ["--witness-directory", str(home / "witnesses.json")]
    command("verify", "--bundle", str(bundle_file), "--require-signature", *options)

    changed = base64.b64encode(flip(receipt)).decode()
    check("a changed receipt fails", not verified(witness=replace(witness, receipt_b64=changed))[0])
    changed = flip(bytes.fromhex(state.checkpoint_cose_hex)).hex()
    check("the receipt fails for another checkpoint", not verified(cose=changed)[0])
    stranger = directory(url, Ed25519PrivateKey.generate().public_key())
    check("the receipt fails under another key", not verified(trusted=stranger)[0])

    act(ledger, 2)
    state = checkpoint_witness_states(ledger)[-1]
    check("the next checkpoint proves its past", state.checkpoint.prev_size > 0)
    [witness] = state.effective_witnesses.values()
    check("and is witnessed too", *verified(witness, state.checkpoint_cose_hex))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as home:
        main(sys.argv[1].rstrip("/"), Path(home))

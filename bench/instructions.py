#!/usr/bin/env python3
"""Counts the instructions of a registration and holds them to a budget.

    cargo bench --profile dev --features rego --bench registration --no-run
    bench/instructions.py            counts, and compares with bench/instructions.budget
    bench/instructions.py --record   writes the budget

A machine that is busy or slow executes the same instructions. Two runs under
callgrind sign the same statements and register 100 and 500 of them; what lies
between is 400 registrations. Batches form by chance, so counts differ by some
percent from run to run: the budget leaves room for that. Without valgrind it
says so and ends with 0.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from json import loads
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUDGET = HERE / "instructions.budget"
ROOM = 1.25


def bench():
    """The bench as the development profile builds it."""
    command = ["cargo", "bench", "--profile", "dev", "--features", "rego", "--bench", "registration", "--no-run", "--message-format", "json"]
    built = subprocess.run(command, cwd=HERE.parent, check=True, capture_output=True, text=True)
    found = [loads(line).get("executable") for line in built.stdout.splitlines() if '"registration"' in line]
    return next(path for path in found if path)


def count(program, registered):
    with tempfile.TemporaryDirectory() as work:
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={work}/out", program, "instructions", str(registered), "--bench"]
        done = subprocess.run(command, cwd=work, capture_output=True, text=True)
        told = re.search(r"Collected : (\d+)", done.stderr)
        if done.returncode or not told:
            sys.exit(f"callgrind: {done.stderr[-2000:]}")
        return int(told[1])


def main():
    if not shutil.which("valgrind"):
        print("skipped: valgrind is not installed")
        return
    program = bench()
    each = (count(program, 500) - count(program, 100)) // 400
    if "--record" in sys.argv:
        BUDGET.write_text(f"{each}\n")
    budget = int(BUDGET.read_text())
    print(f"{each:,} instructions for a registration, the budget is {budget:,}")
    if each > budget * ROOM:
        sys.exit(f"more than {ROOM} times the budget: find out why, or record a new one and say why")


main()

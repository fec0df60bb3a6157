#!/usr/bin/env python3
"""Crash matrix: the file operations of a run are recorded, and the disk is rebuilt
as a crash after each of them could leave it.

    SEED=N tests/faults/run [long] crash_matrix [crash_matrix_large]

kept        the process dies, the system survives
lost        power cut: unsynced data is lost
lost-names  also, a name survives only if its directory was synced
torn        the first operations survive, one write in part
reordered   each unsynced write survives at random

Double faults: the start after a crash crashes as well, or a call failed with EIO
or ENOSPC before the crash.
"""

import argparse
import concurrent.futures
import os
import random
import shutil
import sys
import time

import lib
import trace

VARIANTS = ("kept", "lost", "lost-names", "torn", "reordered")
ERRORS = ("EIO", "ENOSPC")
FAILING = ("write", "writev", "pwrite64", "fsync", "fdatasync", "rename", "openat")


class Run:
    """The operations of a log on a copy of `base` under strace, and when it sent
    receipts and checkpoints. `around` makes a call fail."""

    def __init__(self, work, name, base, statements, writers, around=()):
        disk, out = os.path.join(work, name), os.path.join(work, name + ".strace")
        shutil.copytree(base, disk)
        tree = trace.Tree(disk)
        acknowledged, notes = [], []
        try:
            server = lib.Server(os.path.join(disk, "data"), trace.strace(out, around))
            with lib.watching(server, notes):
                lib.register(server, statements, acknowledged, writers)
                if server.alive():
                    time.sleep(1.3)
            # After an error the log may not stop cleanly.
            server.kill() if around else server.terminate()
        except lib.NotStarted:
            pass
        self.found, self.calls = trace.Trace(out, tree, disk), trace.counts(out)
        self.receipts = [(self.sent(receipt), name, receipt) for name, receipt in acknowledged]
        self.notes = [(self.sent(note), note) for note in notes]
        shutil.rmtree(disk)
        os.remove(out)

    def sent(self, data):
        """When it was sent."""
        moments = [start for start, sent in self.found.sent if data in sent]
        if not moments:
            raise SystemExit("something was received and never sent: the trace is not whole")
        return min(moments)

    def promised(self, crash):
        """Receipts and checkpoints sent before the crash."""
        receipts = [(name, receipt) for sent, name, receipt in self.receipts if sent < crash]
        return receipts, [note for sent, note in self.notes if sent < crash]

    def points(self):
        """A crash before the first operation, between any two, after the last."""
        ends = {op.end for op in self.found.ops} | {op.start for op in self.found.ops}
        return [0] + [end + 1 for end in sorted(ends)]

    def schedules(self, dice, limit, rounds=1):
        """A sample of the schedules (every point with every variant, random variants
        several times), and their number."""
        every = []
        for crash in self.points():
            for variant in VARIANTS:
                for _ in range(rounds if variant in ("torn", "reordered") else 1):
                    every.append((crash, variant, dice.randrange(1 << 32)))
        return dice.sample(every, min(limit or len(every), len(every))), len(every)

    def build(self, disk, crash, variant, seed):
        self.found.build(disk, *self.found.schedule(crash, variant, random.Random(seed)))


class Matrix:
    """Runs schedules and records those that violate an invariant."""

    def __init__(self, work, fresh):
        self.work, self.fresh = work, fresh
        self.tried, self.failures = 0, []

    def one(self, run, schedule, before=((), ())):
        """The violation after a crash, if any."""
        crash, variant, seed = schedule
        disk = os.path.join(self.work, f"disk-{crash}-{variant}-{seed}")
        run.build(disk, crash, variant, seed)
        receipts, notes = run.promised(crash)
        receipts, notes = [*before[0], *receipts], [*before[1], *notes]
        try:
            lib.check_data(os.path.join(disk, "data"), receipts, self.fresh, notes)
        except lib.Broken as error:
            return f"crash at {crash}, {variant}, seed {seed}: {error}"
        shutil.rmtree(disk)
        return None

    def all(self, run, schedules, before=((), ())):
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for failure in pool.map(lambda schedule: self.one(run, schedule, before), schedules):
                self.tried += 1
                if failure:
                    self.failures.append(failure)
                    lib.say("BROKEN " + failure)

    def say(self, what):
        lib.say(f"{what}: {self.tried} schedules so far, {len(self.failures)} broken")

    def check_detection(self, run):
        """Checks that violations are detected: unsynced statements, a foreign
        receipt."""
        crash = run.points()[len(run.points()) // 2]
        early = run.promised(float("inf"))
        name, receipt = early[0][0]
        forged = receipt[:-1] + bytes([receipt[-1] ^ 1])
        last = run.points()[-1]
        for schedule, before in (
            ((crash, "lost", 0), early),
            ((last, "kept", 0), ([(name, forged)], [])),
        ):
            if not self.one(run, schedule, before):
                raise SystemExit(f"the matrix does not see a broken promise: {schedule}")
            shutil.rmtree(os.path.join(self.work, f"disk-{schedule[0]}-{schedule[1]}-0"))


def crashed_twice(matrix, run, statements, dice, count, limit):
    """The recovery from a crash is traced and crashes as well."""
    for number in range(count):
        crash, variant = dice.choice(run.points()[1:]), dice.choice(VARIANTS)
        base = os.path.join(matrix.work, f"double-{number}")
        run.build(base, crash, variant, dice.randrange(1 << 32))
        second = Run(matrix.work, f"again-{number}", base, statements, 2)
        matrix.all(second, second.schedules(dice, limit)[0], run.promised(crash))
        shutil.rmtree(base)


def failed_and_crashed(matrix, run, base, statements, dice, count, limit):
    """Runs in which a call fails. The first is a sync of the journal, after which
    the disk and the page cache differ."""
    calls = [(call, nth) for call in FAILING for nth in range(1, run.calls.get(call, 0) + 1)]
    syncs = [(call, nth) for call, nth in calls if call == "fdatasync"]
    for number in range(count):
        call, nth = dice.choice(calls if number else syncs)
        error = dice.choice(ERRORS)
        around = ["-e", f"inject={call}:error={error}:when={nth}"]
        failed = Run(matrix.work, f"failed-{number}", base, statements, 4, around)
        schedules = failed.schedules(dice, limit)[0]
        # A crash right after the error.
        schedules += [(failed.points()[-1], variant, 0) for variant in ("kept", "lost")]
        matrix.all(failed, schedules)


def small(work, dice, long):
    base = os.path.join(work, "base")
    os.makedirs(base)
    lib.new_log(base)
    count = 24 if long else 10
    *statements, fresh = lib.Statements(work, count + 6).all
    first, rest = statements[:count], statements[count:]
    run = Run(work, "run", base, first, 4)
    if len(run.receipts) != count or not run.notes:
        raise SystemExit(f"{len(run.receipts)} of {count} were acknowledged")
    matrix = Matrix(work, fresh)
    matrix.check_detection(run)
    schedules, total = run.schedules(dice, None if long else 90, 4 if long else 1)
    lib.say(
        f"small: {count} statements, {len(run.found.ops)} operations,"
        f" {len(schedules)} of {total} schedules, seed {lib.seed()}"
    )
    matrix.all(run, schedules)
    matrix.say("one crash")
    crashed_twice(matrix, run, rest, dice, *((12, 60) if long else (2, 15)))
    matrix.say("a second crash during recovery")
    failed_and_crashed(matrix, run, base, first, dice, *((40, 20) if long else (4, 6)))
    matrix.say("a crash after EIO or ENOSPC")
    return matrix


def large(work, dice, long):
    """Enough data for the engine to write tables and drop journals."""
    base = os.path.join(work, "base")
    os.makedirs(base)
    lib.new_log(base)
    *statements, fresh = lib.Statements(work, 181, 60000).all
    run = Run(work, "run", base, statements, 8)
    tables = sum("tables" in op.label for op in run.found.ops)
    schedules, total = run.schedules(dice, 500 if long else 20)
    lib.say(
        f"large: {len(run.receipts)} statements, {len(run.found.ops)} operations, {tables} tables"
        f" made, {len(schedules)} of {total} schedules, seed {lib.seed()}"
    )
    matrix = Matrix(work, fresh)
    matrix.all(run, schedules)
    return matrix


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--large", action="store_true")
    options = parser.parse_args()
    work, started = lib.scratch("matrix"), time.time()
    kind = large if options.large else small
    matrix = kind(work, random.Random(lib.seed()), options.long)
    seconds = time.time() - started
    lib.say(
        f"crash matrix: {matrix.tried} schedules, {len(matrix.failures)} broken, {seconds:.0f} s"
    )
    lib.finish(work, matrix.failures)


if __name__ == "__main__":
    sys.exit(main())

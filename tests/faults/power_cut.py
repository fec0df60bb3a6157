#!/usr/bin/env python3
"""Power cuts: the log runs on a file system in an image. At random moments it is
stopped while working and the image is copied, without unsynced data, like a disk
after a power cut. The copy is mounted, which replays its journal, and all
invariants must hold.

The log is stopped because copying takes time: a copy of a disk that is being
written mixes early and late blocks, which no power cut does. For the same reason
the file system is configured not to write back by itself.

    SEED=N tests/faults/run [long] power_cut

Needs root and a loop device.
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time

import lib

# Statements before each cut.
EACH = 6
# The small disk must not count as full.
SETTINGS = {"CAPSTAN_DISK__MIN_FREE_BYTES": "0"}


def ran(*command):
    return subprocess.run(command, capture_output=True).returncode == 0


def stop(server):
    """Stops every thread; a running sync ends first."""
    os.killpg(server.process.pid, signal.SIGSTOP)
    tasks = f"/proc/{server.process.pid}/task"
    for _ in range(1000):
        states = []
        for task in os.listdir(tasks):
            with open(f"{tasks}/{task}/stat", encoding="ascii") as file:
                states.append(file.read().rsplit(")", 1)[1].split()[0])
        if set(states) == {"T"}:
            return
        time.sleep(0.002)
    raise SystemExit("the log cannot be stopped")


class Disks:
    """A mounted image, and a mount point for copies."""

    def __init__(self, work):
        self.image, self.copy = os.path.join(work, "image"), os.path.join(work, "copy")
        self.disk, self.found = os.path.join(work, "disk"), os.path.join(work, "found")
        os.mkdir(self.disk)
        os.mkdir(self.found)
        with open(self.image, "wb") as file:
            file.truncate(96 << 20)

    def mount(self):
        return ran("mkfs.ext4", "-qF", self.image) and ran(
            "mount", "-o", "loop,commit=300", self.image, self.disk
        )


def cut(disks, server, acknowledged, notes, fresh):
    """Simulates a power cut; the violation, if any, and the number of receipts
    checked."""
    stop(server)
    known, shown = list(acknowledged), list(notes)
    shutil.copyfile(disks.image, disks.copy)
    os.killpg(server.process.pid, signal.SIGCONT)
    if not ran("mount", "-o", "loop", disks.copy, disks.found):
        return "the copy cannot be mounted", 0
    try:
        lib.check_data(os.path.join(disks.found, "data"), known, fresh, shown, SETTINGS)
    except lib.Broken as error:
        return str(error), 0
    finally:
        ran("umount", disks.found)
    return None, len(known) + len(shown)


def main():
    cuts, dice = 40 if "--long" in sys.argv else 4, random.Random(lib.seed())
    if os.geteuid() != 0 or not shutil.which("mkfs.ext4"):
        lib.say("power cut: skipped: only root can mount an image, with mkfs.ext4")
        return
    work = lib.scratch("power")
    disks = Disks(work)
    if not disks.mount():
        lib.say("power cut: skipped: no loop device is available")
        shutil.rmtree(work)
        return
    failures, promised = [], 0
    try:
        data = lib.new_log(disks.disk)
        *statements, fresh = lib.Statements(work, cuts * EACH + 1).all
        acknowledged, notes = [], []
        server = lib.Server(data, settings=SETTINGS)
        with lib.watching(server, notes):
            for number in range(cuts):
                part = statements[number * EACH : (number + 1) * EACH]
                load = threading.Thread(target=lib.register, args=(server, part, acknowledged, 2))
                load.start()
                time.sleep(dice.uniform(0, 0.15))
                failure, looked = cut(disks, server, acknowledged, notes, fresh)
                load.join()
                promised += looked
                if failure:
                    failures.append(f"cut {number}: {failure}")
                    lib.say("BROKEN " + failures[-1])
        server.kill()
    finally:
        ran("umount", disks.disk)
    lib.say(
        f"power cut: {cuts} cuts, seed {lib.seed()}: {promised} promises looked at,"
        f" {len(failures)} broken"
    )
    lib.finish(work, failures)


if __name__ == "__main__":
    sys.exit(main())

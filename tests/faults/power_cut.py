#!/usr/bin/env python3
"""A power cut: the log runs on a file system in an image. At some moment it is
stopped in the middle of its work and the image is copied, as a disk would be
found after the plug was pulled: what was not synced is not in it. The copy is
mounted, which replays its journal, and must have kept every promise.

The log is stopped because a copy takes time: of a disk that is written
meanwhile it would show early and late blocks side by side, which no power cut
does. For the same reason the file system is told not to write by itself.

    power_cut.py [--long]

Needs root and a loop device.
"""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time

import lib


def ran(*command):
    return subprocess.run(command, capture_output=True).returncode == 0


def stop(server):
    """Stops every thread; a sync that is under way ends first."""
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


def main():
    cuts = 40 if "--long" in sys.argv else 3
    if os.geteuid() != 0 or not shutil.which("mkfs.ext4"):
        lib.say("skipped: only root can mount an image, with mkfs.ext4")
        return
    work = lib.scratch("power")
    image, copy = os.path.join(work, "image"), os.path.join(work, "copy")
    disk, found = os.path.join(work, "disk"), os.path.join(work, "found")
    os.mkdir(disk)
    os.mkdir(found)
    with open(image, "wb") as file:
        file.truncate(96 << 20)
    if not ran("mkfs.ext4", "-qF", image) or not ran("mount", "-o", "loop,commit=300", image, disk):
        lib.say("skipped: no loop device can be had here")
        shutil.rmtree(work)
        return
    failures, promised = [], 0
    # A small disk must not count as full.
    settings = {"CAPSTAN_DISK__MIN_FREE_BYTES": "0"}
    try:
        data = lib.new_log(disk)
        statements = lib.Statements(work, cuts * 6 + 1).all
        fresh = statements.pop()
        acknowledged = []
        server = lib.Server(data, settings=settings)
        for cut in range(cuts):
            part = statements[cut * 6 : cut * 6 + 6]
            load = threading.Thread(target=lib.register, args=(server, part, acknowledged, 2))
            load.start()
            time.sleep(0.005 * (cut % 9))
            stop(server)
            known = list(acknowledged)
            shutil.copyfile(image, copy)
            os.killpg(server.process.pid, signal.SIGCONT)
            load.join()
            promised += len(known)
            if not ran("mount", "-o", "loop", copy, found):
                failures.append(f"cut {cut}: the copy cannot be mounted")
                continue
            try:
                lib.check_data(os.path.join(found, "data"), known, fresh, settings=settings)
            except lib.Broken as error:
                failures.append(f"cut {cut}: {error}")
                lib.say("BROKEN " + failures[-1])
            finally:
                ran("umount", found)
        server.kill()
    finally:
        ran("umount", disk)
    lib.say(f"power cut: {cuts} cuts, {promised} promises looked at, {len(failures)} broken")
    lib.finish(work, failures)


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Whether the fault programs can fail: each promise is broken in the source of
the log, one at a time, and the program that looks after it must say so.

    SEED=N tests/faults/mutants.py

Works on a copy of the source in target/mutants. Takes as long as building
Capstan anew, and some minutes more.
"""

import os
import pathlib
import shutil
import subprocess
import sys

import lib

WORK = pathlib.Path(lib.ROOT) / "target" / "mutants"
# What is done to the log, where, and the program that must notice.
MUTANTS = [
    (
        "commits without a sync",
        [("src/store/fjall.rs", "batch.durability(Some(PersistMode::SyncData))", "batch.durability(None)")],
        "crash_matrix",
    ),
    (
        "goes on after a commit that failed",
        [("src/store/fjall.rs", "batch.commit().map_err(|error| CommitError::Unknown(error.into()))", "batch.commit().or(Ok(()))")],
        "inject",
    ),
    (
        "does not look at the guard",
        [("src/service/open.rs", "check_known_heads(&store, (&head, &edge), guard, &identity)?;", "let _ = check_known_heads;")],
        "clock",
    ),
    (
        "does not write the guard",
        [("src/service/maintain/publish.rs", "        self.guard.write(&head)?;\n", "")],
        "clock",
    ),
    (
        "lets its time go back",
        [("src/store/head.rs", "time: self.time.max(now)", "time: now")],
        "clock",
    ),
    (
        "gives a statement a second place",
        [
            ("src/service/write/register.rs", "let index = self.store.find(&authentic.id())?;", "let index = None::<LeafIndex>;"),
            ("src/service/write/writer.rs", "Ok(if is_possible {", "Ok(if is_possible && false {"),
        ],
        "kill",
    ),
]


def copy_source():
    tree = WORK / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    listed = subprocess.run(["git", "ls-files"], cwd=lib.ROOT, check=True, capture_output=True, text=True)
    for name in listed.stdout.splitlines():
        target = tree / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(os.path.join(lib.ROOT, name), target)
    return tree


def build(tree):
    command = ["cargo", "build", "--quiet", "--locked", "--bin", "capstan"]
    environment = {**os.environ, "CARGO_TARGET_DIR": str(WORK / "build"), "RUSTFLAGS": "-Awarnings"}
    subprocess.run(command, cwd=tree, check=True, env=environment)
    return WORK / "build" / "debug" / "capstan"


def check_anchors(tree):
    """Fails before anything is built if the source has moved away from an edit."""
    for mutant, edits, _ in MUTANTS:
        for name, old, _ in edits:
            path = tree / name
            count = path.read_text().count(old) if path.exists() else 0
            if count != 1:
                raise SystemExit(f"{mutant}: {name} has this text {count} times, not once: {old}")


def change(tree, edits):
    """Makes the edits; what stood there, to be put back."""
    before = {}
    for name, old, new in edits:
        path = tree / name
        text = path.read_text()
        before.setdefault(path, text)
        path.write_text(text.replace(old, new))
    return before


def notices(part, program):
    """What a program says about the log; none when it finds nothing."""
    here = os.path.dirname(os.path.abspath(__file__))
    environment = {**os.environ, "CAPSTAN": str(program), "FAULTS_DIR": str(WORK / "scratch")}
    done = subprocess.run([sys.executable, f"{part}.py"], cwd=here, env=environment, capture_output=True, text=True)
    said = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    if done.returncode == 0:
        return None
    return next((line for line in said if "BROKEN" in line), said[-1] if said else "nothing")


def main():
    tree, missed = copy_source(), []
    check_anchors(tree)
    (WORK / "scratch").mkdir(parents=True, exist_ok=True)
    program = build(tree)
    for part in sorted({part for _, _, part in MUTANTS}):
        said = notices(part, program)
        if said:
            raise SystemExit(f"{part} finds fault with the log as it is: {said}")
    lib.say("the log as it is: nothing found")
    for name, edits, part in MUTANTS:
        before = change(tree, edits)
        said = notices(part, build(tree))
        lib.say(f"a log that {name}: {part}: {(said or 'NOT NOTICED')[:200]}")
        if said is None:
            missed.append(name)
        for path, text in before.items():
            path.write_text(text)
    shutil.rmtree(WORK / "scratch", ignore_errors=True)
    lib.say(f"{len(MUTANTS)} mutants, {len(missed)} not noticed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

//! Logs that must show that they are the newest before they write: restored
//! ones, copies that were put to use, directories that were moved.

use std::process::Command;

use serde_json::Value;

use crate::backup::Sandbox;
use crate::crash::copy_tree;
use crate::live::{Server, request};

const OPEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/policy/open.toml");

/// Tries to serve a directory for writing; what it says when it does not.
fn refused(sandbox: &Sandbox, data: &str) -> String {
    let mut serve = Command::new(env!("CARGO_BIN_EXE_capstan"));
    serve.args(["serve", "--listen", "127.0.0.1:0", "--json", "--data"]).arg(sandbox.path(data));
    let output = serve.env_remove("CAPSTAN_VECTORS").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{data}: {said}");
    assert!(said.contains(&format!("resume --data {}", sandbox.path(data).display())), "{said}");
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    answer["code"].as_str().unwrap().to_owned()
}

/// The head a copy or a log has, as an operator types it.
fn head(sandbox: &Sandbox, data: &str) -> String {
    let (exit, answer) = sandbox.run(&format!("fsck --data {data}"));
    assert_eq!(exit, 0, "{answer}");
    format!("{}:{}", answer["size"], answer["root"].as_str().unwrap())
}

/// The last entry, as `inspect` shows it.
fn last_entry(sandbox: &Sandbox, server: &Server, index: u64) -> Value {
    let path = format!("GET /entries/1.{index}/statement");
    let (status, bytes) = request(&server.address, &path, b"").unwrap();
    assert_eq!(status, 200);
    std::fs::write(sandbox.path("entry.cose"), bytes).unwrap();
    let (exit, answer) = sandbox.run("inspect entry.cose");
    assert_eq!(exit, 0);
    answer
}

/// A second log from the copy of a running one: it is there, and silent.
#[test]
fn restored_log_writes_only_after_proof() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox.path("data"));
    sandbox.register(&server, 3);
    std::fs::copy(sandbox.path("data/checkpoint"), sandbox.path("early")).unwrap();
    assert_eq!(sandbox.run("backup --data data --to copy").0, 0);
    let (exit, answer) = sandbox.run("restore --from copy --data log2 --keys data/keys");
    assert_eq!((exit, &answer["writable"]), (0, &false.into()), "{answer}");
    for _restart in 0..2 {
        assert_eq!(refused(&sandbox, "log2"), "store-unproven");
    }
    let head = head(&sandbox, "log2");
    let (size, root) = head.split_once(':').unwrap();
    let flipped = if root.starts_with('0') { "1" } else { "0" };
    let peer = format!("--peer http://{}", server.address);
    let rows = [
        (1, "store-unproven", "resume --data log2".to_owned()),
        (1, "store-unproven", "key rotate --data log2".to_owned()),
        // A head smaller than the copy's says nothing about what came after.
        (1, "store-unproven", "resume --data log2 --checkpoint early".to_owned()),
        // Nothing is newer, but the log itself still writes.
        (1, "store-other-writer", format!("resume --data log2 {peer}")),
        (1, "store-head-differs", format!("resume --data log2 --i-am-the-only-writer 4:{root}")),
        (
            1,
            "store-head-differs",
            format!("resume --data log2 --i-am-the-only-writer {size}:{flipped}{}", &root[1..]),
        ),
        (2, "usage", format!("resume --data log2 --i-am-the-only-writer {size}")),
        (
            1,
            "store-other-writer",
            format!("restore --from copy --data log3 --keys data/keys {peer}"),
        ),
    ];
    wait_for_checkpoint(&server, size);
    for (exit, code, line) in rows {
        let (found, answer) = sandbox.run(&line);
        assert_eq!((found, answer["code"].as_str()), (exit, Some(code)), "{line}: {answer}");
    }
    assert!(!sandbox.path("log3/FORMAT").exists());
    // The first log goes on, and is no peer that could help.
    sandbox.register(&server, 1);
    assert!(server.terminate().success());
    let (exit, answer) = sandbox.run("resume --data log2 --checkpoint data/checkpoint");
    assert_eq!((exit, &answer["code"]), (1, &"store-rolled-back".into()), "{answer}");
    assert_eq!(refused(&sandbox, "log2"), "store-unproven");
}

fn wait_for_checkpoint(server: &Server, size: &str) {
    let published = || {
        let (_, note) = request(&server.address, "GET /checkpoint", b"").unwrap();
        String::from_utf8(note).unwrap().lines().nth(1) == Some(size)
    };
    assert!((0..100).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        published()
    }));
}

/// Each kind of proof lets a restored log write, and is its first statement.
#[test]
fn resumption_logs_what_was_compared() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox.path("data"));
    sandbox.register(&server, 3);
    assert!(server.terminate().success());
    assert_eq!(sandbox.run("backup --data data --to copy").0, 0);
    let head = head(&sandbox, "copy");
    let (size, root) = head.split_once(':').unwrap();
    let mirror = mirror(std::fs::read(sandbox.path("data/checkpoint")).unwrap());
    let rows = [
        ("guard", String::new()),
        ("checkpoint", "--checkpoint data/checkpoint".to_owned()),
        ("peer", format!("--peer http://{mirror}")),
        ("operator", format!("--i-am-the-only-writer {head}")),
    ];
    for (source, proof) in rows {
        for at_once in [true, false] {
            let name = format!("{source}-{at_once}");
            if source == "guard" && at_once {
                std::fs::copy(sandbox.path("data.guard"), sandbox.path(&format!("{name}.guard")))
                    .unwrap();
            }
            let restore = format!("restore --from copy --data {name} --keys data/keys");
            let line = if at_once { format!("{restore} {proof}") } else { restore };
            let (exit, answer) = sandbox.run(&line);
            assert_eq!((exit, &answer["writable"]), (0, &at_once.into()), "{line}: {answer}");
            if !at_once {
                if source == "guard" {
                    let guard = sandbox.path(&format!("{name}.guard"));
                    std::fs::copy(sandbox.path("data.guard"), guard).unwrap();
                    assert_eq!(refused(&sandbox, &name), "store-unproven");
                }
                let (exit, answer) = sandbox.run(&format!("resume --data {name} {proof}"));
                assert_eq!((exit, &answer["index"]), (0, &5.into()), "{name}: {answer}");
            }
            let server = Server::start(&sandbox.path(&name));
            sandbox.register(&server, 1);
            let entry = last_entry(&sandbox, &server, 5);
            assert_eq!(entry["content_type"], "application/vnd.capstan.resumption+cbor");
            let said = &entry["record"];
            assert_eq!((&said["reason"], &said["root"]), (&"restored".into(), &root.into()));
            assert_eq!(said["size"].to_string(), size);
            assert_eq!(said["compared"][0]["source"], source, "{entry}");
            assert!(server.terminate().success());
            sandbox.is_whole(&name);
            let (exit, answer) = sandbox.run(&format!("replay --data {name}"));
            assert_eq!(exit, 0, "{answer}");
            let (exit, answer) = sandbox.run(&format!("resume --data {name}"));
            assert_eq!((exit, &answer["writable"]), (0, &true.into()), "{answer}");
        }
    }
}

/// Whoever serves a checkpoint and nothing else.
fn mirror(note: Vec<u8>) -> String {
    use std::io::{Read as _, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut request = [0; 2048];
            let read = stream.read(&mut request).unwrap_or(0);
            let is_note = String::from_utf8_lossy(&request[..read]).starts_with("GET /checkpoint ");
            let (status, body): (_, &[u8]) =
                if is_note { ("200 OK", &note) } else { ("404 Not Found", b"") };
            let head = format!(
                "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                body.len()
            );
            let _gone = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
        }
    });
    address
}

/// A directory without its guard may be any age.
#[test]
fn log_without_its_guard_does_not_write() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox.path("data"));
    sandbox.register(&server, 2);
    assert!(server.terminate().success());
    copy_tree(&sandbox.path("data"), &sandbox.path("twin"));
    assert_eq!(refused(&sandbox, "twin"), "store-guard-missing");
    let (exit, answer) = sandbox.run("key rotate --data twin");
    assert_eq!((exit, &answer["code"]), (1, &"store-guard-missing".into()), "{answer}");
    // Without writing it is what it is.
    assert_eq!(sandbox.run("fsck --data twin").0, 0);
    // Moved together with its guard it is the same log.
    std::fs::rename(sandbox.path("data"), sandbox.path("moved")).unwrap();
    std::fs::rename(sandbox.path("data.guard"), sandbox.path("moved.guard")).unwrap();
    let server = Server::start(&sandbox.path("moved"));
    sandbox.register(&server, 1);
    assert!(server.terminate().success());
    // A guard on a disk that is not there.
    let settings = std::fs::read_to_string(sandbox.path("moved/capstan.toml")).unwrap();
    let elsewhere = sandbox.path("elsewhere.guard");
    let line = format!("[guard]\npath = {:?}\n", elsewhere.display().to_string());
    std::fs::write(sandbox.path("moved/capstan.toml"), settings.replacen("[guard]\n", &line, 1))
        .unwrap();
    assert_eq!(refused(&sandbox, "moved"), "store-guard-missing");
    let (exit, answer) = sandbox
        .run(&format!("resume --data moved --i-am-the-only-writer {}", head(&sandbox, "moved")));
    assert_eq!((exit, &answer["writable"]), (0, &true.into()), "{answer}");
    assert!(elsewhere.exists());
    let server = Server::start(&sandbox.path("moved"));
    let entry = last_entry(&sandbox, &server, 5);
    assert_eq!(entry["record"]["reason"], "guard-missing", "{entry}");
    assert!(server.terminate().success());
}

/// Settings that are copied along may name the guard of the first directory.
#[test]
fn copies_that_share_a_guard_do_not_both_write() {
    let sandbox = Sandbox::new();
    let init = format!("init --data log --name shared.invalid --policy {OPEN} --guard one.guard");
    assert_eq!(sandbox.run(&init).0, 0);
    copy_tree(&sandbox.path("log"), &sandbox.path("twin"));
    let server = Server::start(&sandbox.path("log"));
    let (exit, answer) = sandbox.run("key rotate --data twin");
    assert_eq!((exit, &answer["code"]), (2, &"store-guard-in-use".into()), "{answer}");
    sandbox.register(&server, 1);
    assert!(server.terminate().success());
    let (exit, answer) = sandbox.run("key rotate --data twin");
    assert_eq!((exit, &answer["code"]), (1, &"store-rolled-back".into()), "{answer}");
    let server = Server::start(&sandbox.path("log"));
    sandbox.register(&server, 1);
    assert!(server.terminate().success());
}

#[test]
fn copy_given_its_keys_does_not_write() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox.path("data"));
    sandbox.register(&server, 2);
    assert!(server.terminate().success());
    assert_eq!(sandbox.run("backup --data data --to copy").0, 0);
    std::fs::remove_dir(sandbox.path("copy/keys")).unwrap();
    copy_tree(&sandbox.path("data/keys"), &sandbox.path("copy/keys"));
    assert_eq!(refused(&sandbox, "copy"), "store-unproven");
    std::fs::copy(sandbox.path("data.guard"), sandbox.path("copy.guard")).unwrap();
    assert_eq!(refused(&sandbox, "copy"), "store-unproven");
}

#[test]
fn new_log_does_not_replace_an_existing_guard() {
    let sandbox = Sandbox::new();
    std::fs::remove_dir_all(sandbox.path("data")).unwrap();
    let before = std::fs::read(sandbox.path("data.guard")).unwrap();
    let init = format!("init --data data --name backup.invalid --policy {OPEN}");
    let (exit, answer) = sandbox.run(&init);
    assert_eq!((exit, &answer["code"]), (1, &"store-guard-left".into()), "{answer}");
    assert_eq!(std::fs::read(sandbox.path("data.guard")).unwrap(), before);
    assert!(!sandbox.path("data").exists());
    // A guard elsewhere is another log's business.
    let (exit, answer) = sandbox.run(&format!("{init} --guard other.guard"));
    assert_eq!(exit, 0, "{answer}");
    assert!(sandbox.path("other.guard").exists());
    assert_eq!(std::fs::read(sandbox.path("data.guard")).unwrap(), before);
    let server = Server::start(&sandbox.path("data"));
    sandbox.register(&server, 1);
    assert!(server.terminate().success());
    std::fs::remove_file(sandbox.path("other.guard")).unwrap();
    assert_eq!(refused(&sandbox, "data"), "store-guard-missing");
}

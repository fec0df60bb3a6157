//! Clients that take their time, on real sockets.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use capstan::key::Algorithm;
use capstan::service;

use crate::live::Server;

const OPEN: &str = include_str!("../../policy/open.toml");

/// A log with these settings; the directory goes with it.
fn log(settings: &str) -> (tempfile::TempDir, Server) {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    service::init(&data, "slow.invalid", OPEN, Algorithm::Es256).unwrap();
    std::fs::write(data.join("capstan.toml"), settings).unwrap();
    let server = Server::start(&data);
    (dir, server)
}

/// Up to the end of one answer.
fn answer(stream: &mut TcpStream) -> String {
    let (mut head, mut byte) = (String::new(), [0]);
    while !head.ends_with("\r\n\r\n") {
        stream.read_exact(&mut byte).unwrap();
        head.push(char::from(byte[0]));
    }
    let lower = head.to_ascii_lowercase();
    let length = lower.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body).unwrap();
    head
}

#[test]
fn unfinished_request_head_times_out() {
    let (_dir, server) = log("[limits]\nheader_seconds = 1\n");
    let heads = ["", "P", "PRI * HTTP/2.0", "GET / HTTP/1.1\r\nhost: x\r\nx-header"];
    let streams = heads.map(|head| {
        let mut stream = TcpStream::connect(&server.address).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        stream
    });
    for (head, mut stream) in heads.iter().zip(streams) {
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut rest = Vec::new();
        match stream.read_to_end(&mut rest) {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{head:?}"),
        }
        assert!(!rest.starts_with(b"HTTP/1.1 2"), "{head:?}");
    }
}

/// It asks for far more than the system keeps for it, and reads none of it.
#[test]
fn unread_response_times_out() {
    let (_dir, server) = log("[limits]\nanswer_seconds = 1\n");
    let mut stream = TcpStream::connect(&server.address).unwrap();
    stream.set_write_timeout(Some(Duration::from_secs(60))).unwrap();
    let request = "GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n";
    stream.write_all(request.repeat(2000).as_bytes()).unwrap();
    for _ in 0..1200 {
        if let Err(error) = stream.write_all(b"G") {
            let gone = [ErrorKind::BrokenPipe, ErrorKind::ConnectionReset];
            assert!(gone.contains(&error.kind()), "{error}");
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("the connection is still open");
}

/// A frame of HTTP/2: its type, flags and stream, then what it carries.
fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).unwrap();
    [&[0, 0, length, kind, flags, 0, 0, 0, stream], payload].concat()
}

/// It grants its answer a window of so many bytes, answers every ping, and
/// gives no more. Whether the answer began is told when the log hangs up.
fn window_of(bytes: u8, address: &str) -> bool {
    const SETTINGS: u8 = 4;
    const PING: u8 = 6;
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
    // SETTINGS_INITIAL_WINDOW_SIZE is 4.
    stream.write_all(&frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, bytes])).unwrap();
    // GET, http, host x, and a path of 13 letters, as HPACK has them.
    let request = [b"\x82\x86\x41\x01x\x04\x0d".as_slice(), b"/openapi.json"].concat();
    stream.write_all(&frame(1, 0x05, 1, &request)).unwrap();
    let (mut head, mut began, mut pings) = ([0; 9], false, 0);
    loop {
        if let Err(error) = stream.read_exact(&mut head) {
            assert_ne!(error.kind(), ErrorKind::WouldBlock, "a window of {bytes}: silence");
            return began;
        }
        let [a, b, length, kind, flags, ..] = head;
        let length = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(length);
        let mut payload = vec![0; length];
        if stream.read_exact(&mut payload).is_err() {
            return began;
        }
        began |= kind <= 1;
        if kind == PING && flags == 0 {
            pings += 1;
            assert!(pings < 30, "a window of {bytes}: the connection is still open");
            let _gone = stream.write_all(&frame(PING, 1, 0, &payload));
        }
    }
}

/// The connection is alive and pings are answered: only the answer stands still.
#[test]
fn closed_http2_window_times_out() {
    let (_dir, server) = log("[limits]\nanswer_seconds = 1\nheader_seconds = 1\n");
    for bytes in [0, 1, 200] {
        assert!(window_of(bytes, &server.address), "a window of {bytes}: no answer");
    }
}

/// What a connection of HTTP/2 may hold is told to it at the start: streams at
/// once, and bytes that nobody has read, which are no more than those of the
/// smallest window there is.
#[test]
fn http2_streams_and_windows_are_bounded() {
    const SETTINGS: u8 = 4;
    const WINDOW_UPDATE: u8 = 8;
    let (_dir, server) = log("[limits]\nstreams_per_connection = 7\n");
    let mut stream = TcpStream::connect(&server.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
    stream.write_all(&frame(SETTINGS, 0, 0, &[])).unwrap();
    let (mut told, mut head) = (std::collections::BTreeMap::new(), [0; 9]);
    // Its own settings, and that it has heard ours, which comes after them.
    loop {
        stream.read_exact(&mut head).unwrap();
        let [a, b, length, kind, flags, ..] = head;
        let length = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(length);
        let mut payload = vec![0; length];
        stream.read_exact(&mut payload).unwrap();
        assert_ne!(kind, WINDOW_UPDATE, "the window of the connection grows: {payload:?}");
        if kind == SETTINGS && flags == 1 {
            break;
        }
        for setting in payload.chunks(6).filter(|_| kind == SETTINGS) {
            let value = u32::from_be_bytes(setting[2..].try_into().unwrap());
            told.insert(u16::from_be_bytes([setting[0], setting[1]]), value);
        }
    }
    // SETTINGS_MAX_CONCURRENT_STREAMS is 3, SETTINGS_INITIAL_WINDOW_SIZE is 4.
    assert_eq!((told.get(&3), told.get(&4)), (Some(&7), Some(&65_535)), "{told:?}");
}

/// Who is sent away hears it before sending the body, and can go on with the
/// same connection.
#[test]
fn refusal_does_not_wait_for_the_request_body() {
    let (_dir, server) = log("[auth]\ntoken = \"secret\"\n");
    let mut stream = TcpStream::connect(&server.address).unwrap();
    let head = "POST /entries HTTP/1.1\r\nhost: x\r\ncontent-type: application/cose\r\n";
    stream.write_all(format!("{head}content-length: 300000\r\n\r\n").as_bytes()).unwrap();
    assert!(answer(&mut stream).starts_with("HTTP/1.1 401"));
    stream.write_all(&[0; 300_000]).unwrap();
    stream.write_all(b"GET /health/live HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    assert!(answer(&mut stream).starts_with("HTTP/1.1 200"));

    // A client that asks first is not told to go on.
    let mut stream = TcpStream::connect(&server.address).unwrap();
    let expect = format!("{head}expect: 100-continue\r\ncontent-length: 300000\r\n\r\n");
    stream.write_all(expect.as_bytes()).unwrap();
    assert!(answer(&mut stream).starts_with("HTTP/1.1 401"));
}

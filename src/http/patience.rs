//! A connection whose other end may be slow, but not for ever.
//!
//! The server below us waits without limit in two places: for the first bytes
//! that tell HTTP/1 from HTTP/2, and for a client to take in its answer. Both
//! would keep a connection from others for as long as somebody likes.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// Bytes of an HTTP/2 preface: with so many the version is known, and the
/// server counts the time itself.
const PREFACE: usize = 24;

/// A stream with both limits.
pub(super) struct Patience<S> {
    stream: S,
    heard: usize,
    greeting: Option<Pin<Box<Sleep>>>,
    taking: Duration,
    /// Runs while the other end takes nothing.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<S> Patience<S> {
    /// Waits so long for the first bytes, and so long for each piece of an
    /// answer to be taken.
    pub(super) fn new(stream: S, (greeting, taking): (Duration, Duration)) -> Self {
        let greeting = Some(Box::pin(tokio::time::sleep(greeting)));
        Self { stream, heard: 0, greeting, taking, stalled: None }
    }

    /// Passes on how a write went, unless it waited for too long.
    fn took<T>(
        &mut self,
        context: &mut Context<'_>,
        write: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if write.is_ready() {
            self.stalled = None;
            return write;
        }
        let taking = self.taking;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(taking)));
        stalled.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patience<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        let Some(greeting) = &mut self.greeting else { return read };
        if read.is_pending() {
            let late = greeting.as_mut().poll(context);
            return late.map(|()| Err(io::ErrorKind::TimedOut.into()));
        }
        self.heard += buffer.filled().len() - before;
        if self.heard >= PREFACE {
            self.greeting = None;
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patience<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let write = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.took(context, write)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let write = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.took(context, write)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flush = Pin::new(&mut self.stream).poll_flush(context);
        self.took(context, flush)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shutdown = Pin::new(&mut self.stream).poll_shutdown(context);
        self.took(context, shutdown)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    const SHORT: Duration = Duration::from_millis(10);
    const LONG: Duration = Duration::from_secs(600);

    #[tokio::test]
    async fn who_does_not_begin_to_speak_is_not_waited_for() {
        for said in [b"".as_slice(), b"PRI * HTTP/2.0"] {
            let (mut client, server) = duplex(1000);
            client.write_all(said).await.unwrap();
            let mut server = Patience::new(server, (SHORT, LONG));
            let mut heard = Vec::new();
            let late = server.read_to_end(&mut heard).await.unwrap_err();
            assert_eq!((late.kind(), heard.as_slice()), (io::ErrorKind::TimedOut, said));
        }
    }

    /// What comes after the first bytes is somebody else's to time.
    #[tokio::test]
    async fn who_has_spoken_may_pause() {
        let (mut client, server) = duplex(1000);
        let mut server = Patience::new(server, (SHORT, LONG));
        client.write_all(&[b'x'; PREFACE]).await.unwrap();
        let mut heard = [0; PREFACE + 1];
        server.read_exact(&mut heard[..PREFACE]).await.unwrap();
        let (last, _) = tokio::join!(server.read_exact(&mut heard[PREFACE..]), async {
            tokio::time::sleep(5 * SHORT).await;
            client.write_all(b"y").await.unwrap();
        });
        last.unwrap();
    }

    #[tokio::test]
    async fn who_does_not_take_the_answer_loses_it() {
        let (mut client, server) = duplex(1000);
        let mut server = Patience::new(server, (LONG, SHORT));
        server.write_all(&[0; 1000]).await.unwrap();
        let stuck = server.write_all(&[0; 1000]).await.unwrap_err();
        assert_eq!(stuck.kind(), io::ErrorKind::TimedOut);
        client.read_exact(&mut [0; 1000]).await.unwrap();
        server.write_all(&[0; 1000]).await.unwrap();
    }
}

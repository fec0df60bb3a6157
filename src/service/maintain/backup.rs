//! Backup of a running or stopped log; `restore.rs` is the inverse.
//!
//! A running log streams its rows through a socket in its data directory, so
//! access to the directory is access to a copy. Rows never change, so the
//! writer does not wait. The receiver recomputes the tree.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::net::UnixListener;

use crate::log::LeafIndex;
use crate::receipt::Head;
use crate::service::error::chain;
use crate::service::open::{checkpoint_verifier, identity_of};
use crate::service::{ControlError, Service};
use crate::store::{self, Backend, Copy, DataDir, Manifest, Store};

/// A row is a statement and its certificates; a manifest holds four files.
const FRAME_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Makes or updates a copy of a log. `progress` gets the statements copied and
/// their total.
pub fn backup(
    data: &Path,
    to: &Path,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Head, ControlError> {
    if let Ok(stream) = UnixStream::connect(DataDir::backup_path(data)) {
        return receive(stream, Copy::open_or_create(to)?, progress);
    }
    let (store, _) = Store::open_unchecked(Backend::open(data)?)?;
    let key = checkpoint_verifier(store.dir(), &identity_of(data)?)?;
    let manifest = Manifest::of(&store, key.to_string())?;
    let copy = Copy::open_or_create(to)?;
    transfer(&store, &manifest, copy, progress)
}

/// Copies row by row from a store of this process.
pub(in crate::service) fn transfer(
    store: &Store,
    manifest: &Manifest,
    mut copy: Copy,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Head, ControlError> {
    let size = manifest.head().size.get();
    for index in copy.size().get()..size {
        copy.push(&store.row(LeafIndex::new(index))?)?;
        progress(index + 1, size);
    }
    copy.finish(manifest)?;
    Ok(manifest.head())
}

/// Copies what a running log sends.
fn receive(
    mut stream: UnixStream,
    mut copy: Copy,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Head, ControlError> {
    let cut = |source| store::Error::Io { path: PathBuf::from("the running log"), source };
    let from = copy.size().get();
    stream.write_all(&from.to_be_bytes()).map_err(cut)?;
    let bytes = read_frame(&mut stream).map_err(cut)?;
    let unreadable = || cut(std::io::Error::other("the response is not a copy of a log"));
    let manifest = Manifest::decode(&bytes).ok_or_else(unreadable)?;
    let size = manifest.head().size.get();
    for index in from..size {
        copy.push(&read_frame(&mut stream).map_err(cut)?)?;
        progress(index + 1, size);
    }
    copy.finish(&manifest)?;
    Ok(manifest.head())
}

fn read_frame(stream: &mut impl Read) -> std::io::Result<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
    if length > FRAME_BYTES_MAX {
        return Err(std::io::Error::other("a frame is too long"));
    }
    let mut bytes = vec![0; length];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn write_frame(stream: &mut impl Write, bytes: &[u8]) -> std::io::Result<()> {
    let length = u32::try_from(bytes.len()).map_err(std::io::Error::other)?;
    stream.write_all(&length.to_be_bytes())?;
    stream.write_all(bytes)
}

impl Service {
    /// Sends copies to clients of the socket, one at a time.
    pub async fn serve_backups(self: Arc<Self>) {
        let path = DataDir::backup_path(self.store.dir().path());
        // This process has the lock, so an existing socket is a leftover.
        let _absent = std::fs::remove_file(&path);
        let listener = match UnixListener::bind(&path) {
            Ok(listener) => listener,
            Err(error) => {
                let path = path.display();
                tracing::warn!(%path, %error, "no backup while serving: the socket cannot be bound");
                return;
            }
        };
        while let Ok((stream, _)) = listener.accept().await {
            let service = self.clone();
            let sent = tokio::task::spawn_blocking(move || {
                let stream = stream.into_std()?;
                stream.set_nonblocking(false)?;
                service.send_copy(stream)
            });
            match sent.await {
                Ok(Ok(size)) => tracing::info!(size, "sent a copy"),
                Ok(Err(error)) => tracing::warn!(error = %chain(&error), "sending a copy failed"),
                Err(_) => return,
            }
        }
    }

    fn send_copy(&self, mut stream: UnixStream) -> std::io::Result<u64> {
        let timeout = Some(std::time::Duration::from_secs(60));
        stream.set_read_timeout(timeout)?;
        stream.set_write_timeout(timeout)?;
        let mut from = [0; 8];
        stream.read_exact(&mut from)?;
        let key = self.checkpoint_key().map_err(std::io::Error::other)?;
        let manifest = Manifest::of(&self.store, key).map_err(std::io::Error::other)?;
        let mut out = std::io::BufWriter::new(stream);
        write_frame(&mut out, &manifest.encode())?;
        let size = manifest.head().size.get();
        for index in u64::from_be_bytes(from)..size {
            let row = self.store.row(LeafIndex::new(index)).map_err(std::io::Error::other)?;
            write_frame(&mut out, &row)?;
        }
        out.flush()?;
        Ok(size)
    }
}

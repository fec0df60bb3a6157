//! Background work: publishing checkpoints, the guard, free disk space.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::checkpoint::{Checkpoint, SignedCheckpoint, VerifierKey};
use crate::log::TreeSize;
use crate::metrics::Metrics;
use crate::receipt::{Head, SignedHead};
use crate::service::error::chain;
use crate::service::{Fault, Identity, Service};
use crate::store::{self, DataDir};

impl Service {
    /// The names of the log.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The counters.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Whether registrations are accepted, and if not, why.
    pub fn writable(&self) -> Result<(), &'static str> {
        if self.options.read_only {
            Err("started read-only")
        } else if self.damaged() {
            Err("the store is damaged")
        } else if self.read_only.load(Ordering::Relaxed) {
            Err("the disk is nearly full")
        } else {
            Ok(())
        }
    }

    /// Whether the scrub found the store damaged.
    pub fn damaged(&self) -> bool {
        self.damaged.load(Ordering::Relaxed)
    }

    /// Whether the last reload of policy and trust failed.
    pub fn reload_failed(&self) -> bool {
        self.reload_failed.load(Ordering::Relaxed)
    }

    /// The last published checkpoint.
    pub fn checkpoint(&self) -> Result<String, Fault> {
        let missing = || store::Error::Io {
            path: std::path::PathBuf::from("checkpoint"),
            source: std::io::ErrorKind::NotFound.into(),
        };
        Ok(self.store.checkpoint()?.ok_or_else(missing)?)
    }

    /// The size of the last published checkpoint, if it verifies.
    pub fn published_size(&self) -> Option<TreeSize> {
        let note = SignedCheckpoint::parse(&self.checkpoint().ok()?).ok()?;
        let key = VerifierKey::new(&self.identity.origin, self.checkpoint_key.public()).ok()?;
        note.verify(&key).ok().map(|checkpoint| checkpoint.size)
    }

    /// The key that verifies checkpoints, in note form.
    pub fn checkpoint_key(&self) -> Result<String, Fault> {
        let verifier = VerifierKey::new(&self.identity.origin, self.checkpoint_key.public());
        Ok(verifier.map_err(|_| store::Error::KeysUnreadable)?.to_string())
    }

    pub(in crate::service) fn sign_head(&self, head: Head) -> Result<SignedHead, Fault> {
        let key = self.shared.signer.load();
        let signed = SignedHead::sign(head, &self.identity.issuer, &key);
        Ok(signed.map_err(|_| store::Error::KeysUnreadable)?)
    }

    /// Publishes the newest head: guard first, so that no published checkpoint
    /// is ahead of it.
    pub fn publish(&self) -> Result<Head, Fault> {
        let _alone = self.publishing.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let head = self.head();
        self.guard.advance(&head)?;
        let note = self.sign_checkpoint(&head)?;
        self.store.publish_checkpoint(&note)?;
        self.metrics.published(head.time.seconds());
        Ok(head)
    }

    /// A checkpoint of a head that receipts were issued for. An unpublished one
    /// is published first, so that the guard covers it.
    pub(in crate::service) fn checkpoint_of(&self, head: &Head) -> Result<String, Fault> {
        let is_published = self.published_size().is_some_and(|size| size >= head.size);
        if !is_published && self.writable().is_ok() {
            self.publish()?;
        }
        self.sign_checkpoint(head)
    }

    fn sign_checkpoint(&self, head: &Head) -> Result<String, Fault> {
        let origin = self.identity.origin.clone();
        let checkpoint = Checkpoint { origin, size: head.size, root: head.root };
        let note = checkpoint.sign(&self.identity.origin, &self.checkpoint_key);
        Ok(note.map_err(|_| store::Error::KeysUnreadable)?)
    }

    /// Makes the log read-only while there is too little free space.
    pub fn watch_disk(&self) -> Result<(), Fault> {
        let free = self.store.dir().free_bytes()?;
        let full = free < self.options.min_free_bytes;
        self.metrics.disk_free(free);
        self.metrics.read_only(full || self.options.read_only || self.damaged());
        if self.read_only.swap(full, Ordering::Relaxed) != full {
            tracing::warn!(free, full, "free disk space crossed the limit");
        }
        Ok(())
    }

    /// Stops accepting statements, commits the accepted ones and publishes.
    pub fn shut_down(&self) -> Result<(), Fault> {
        self.committer.drain();
        let _absent = std::fs::remove_file(DataDir::backup_path(self.store.dir().path()));
        if self.options.read_only {
            return Ok(());
        }
        self.publish().map(drop)
    }
}

/// Publishes whenever there is something new, and watches the disk.
pub async fn keep_publishing(service: Arc<Service>, interval: Duration) {
    let mut ticks = tokio::time::interval(interval);
    let mut published = None;
    loop {
        ticks.tick().await;
        let service = service.clone();
        let due = published != Some(service.head().size) && !service.options.read_only;
        let worked = tokio::task::spawn_blocking(move || {
            service.watch_disk()?;
            if due { service.publish().map(Some) } else { Ok(None) }
        });
        match worked.await {
            Ok(Ok(head)) => published = head.map(|h| h.size).or(published),
            Ok(Err(error)) => {
                tracing::error!(
                    code = error.code(),
                    error = %chain(&error),
                    "publishing failed"
                );
            }
            Err(_) => return,
        }
    }
}

//! Signed statements in numbers, as agents would send them.

use capstan::envelope::{Draft, seal};
use capstan::key::{Algorithm, SigningKey};
use capstan::wire::time::UnixSeconds;

/// An agent with a key of its own.
pub(crate) struct Agent {
    key: SigningKey,
}

impl Agent {
    /// A new agent.
    pub(crate) fn new() -> Self {
        Self { key: SigningKey::generate(Algorithm::Es256).expect("a key") }
    }

    /// The trust file that pins the agent's key.
    pub(crate) fn trust(&self) -> String {
        let pem = self.key.public().to_pem().expect("PEM");
        format!("[[issuer]]\nname = \"https://agent.example\"\nkeys = ['''\n{pem}''']\n")
    }

    /// `count` different statements with a payload of about 600 bytes,
    /// signed on all cores.
    pub(crate) fn sign(&self, first: usize, count: usize) -> Vec<Vec<u8>> {
        let half = count / 2;
        std::thread::scope(|scope| {
            let other = scope.spawn(|| self.sign_here(first + half, count - half));
            let mut all = self.sign_here(first, half);
            all.extend(other.join().expect("signed"));
            all
        })
    }

    fn sign_here(&self, first: usize, count: usize) -> Vec<Vec<u8>> {
        (first..first + count)
            .map(|n| {
                let filler = "x".repeat(520);
                let payload = format!(
                    r#"{{"action":"pay","order":{n},"verdict":"executed","filler":"{filler}"}}"#
                );
                let subject = format!("urn:example:order:{n}");
                let draft = Draft {
                    content_type: "application/json",
                    issuer: "https://agent.example",
                    subject: &subject,
                    issued_at: Some(UnixSeconds::new(1_780_000_000)),
                    payload: payload.as_bytes(),
                };
                seal(&draft, &self.key).expect("sealed")
            })
            .collect()
    }
}

//! Panics of the engine over damaged files, turned into errors.
//!
//! fjall panics over some damage, and to those who look for damage that is a
//! finding like any other.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Once, OnceLock};

use super::Error;

thread_local! {
    /// Whether a panic of this thread is caught here and not printed.
    static CAUGHT: Cell<bool> = const { Cell::new(false) };
    /// The message of the first panic, until an error takes it.
    static MESSAGE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Reports the error a process dies of, and gives its exit code.
type Report = Box<dyn Fn(Error) -> i32 + Send + Sync>;

static HOOK: Once = Once::new();
static FATAL: OnceLock<Report> = OnceLock::new();

/// Some files make the engine panic again while the first panic unwinds, which
/// ends the process. `report` is called before that, and gives the exit code.
pub fn on_fatal_panic(report: impl Fn(Error) -> i32 + Send + Sync + 'static) {
    let _is_set = FATAL.set(Box::new(report));
}

/// Opens or reads the store; a panic becomes an error. Never around a write:
/// nobody would know what is on the disk.
pub fn catch_panic<T, E: From<Error>>(work: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    HOOK.call_once(|| {
        let default = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if CAUGHT.get() { keep_message(panic.payload()) } else { default(panic) }
        }));
    });
    let outer = CAUGHT.replace(true);
    let done = panic::catch_unwind(AssertUnwindSafe(work));
    CAUGHT.set(outer);
    done.unwrap_or_else(|_| Err(panicked().into()))
}

fn keep_message(panic: &(dyn Any + Send)) {
    if MESSAGE.with_borrow(Option::is_none) {
        MESSAGE.set(Some(message(panic)));
    } else if let Some(report) = FATAL.get() {
        std::process::exit(report(panicked()));
    }
}

fn panicked() -> Error {
    Error::EnginePanicked { message: MESSAGE.take().unwrap_or_default() }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    // An assertion prints what it compared on lines of their own.
    text.unwrap_or("no message").split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panic_becomes_error_with_its_message() {
        let work = |what: &str| -> Result<u8, Error> {
            match what {
                "formatted" => panic!("over block {}", 7),
                "plain" => panic!("over a block"),
                "not text" => panic::panic_any(7),
                "error" => Err(Error::HeadMissing),
                _ => Ok(7),
            }
        };
        let caught = |what| catch_panic(|| work(what)).map_err(|error| error.to_string());
        let panicked =
            |message: &str| Err(format!("the embedded store panicked over its files: {message}"));
        assert_eq!(caught("formatted"), panicked("over block 7"));
        assert_eq!(caught("plain"), panicked("over a block"));
        assert_eq!(caught("not text"), panicked("no message"));
        assert_eq!(caught("error"), Err(Error::HeadMissing.to_string()));
        assert_eq!(caught(""), Ok(7));
        assert!(!CAUGHT.get());
    }
}

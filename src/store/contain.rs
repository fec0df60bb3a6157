//! The engine panics over some damaged files. To those who look for damage
//! that is an answer like any other.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Once, OnceLock};

use super::Error;

thread_local! {
    /// Whether a panic of this thread becomes an error, which tells all of it.
    static CONTAINED: Cell<bool> = const { Cell::new(false) };
    /// What the first panic said, until it is an error.
    static SAID: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Hears the last error of a process and gives its exit code.
type LastWords = Box<dyn Fn(Error) -> i32 + Send + Sync>;

static HOOK: Once = Once::new();
static HOPELESS: OnceLock<LastWords> = OnceLock::new();

/// Some files make the engine panic a second time, while the first panic lets
/// go of it. Nothing returns from that: the process ends, and `say` is its last
/// chance to tell why.
pub fn when_hopeless(say: impl Fn(Error) -> i32 + Send + Sync + 'static) {
    let _is_set = HOPELESS.set(Box::new(say));
}

/// Opens the store or reads it; a panic is an error. What writes does not
/// belong here: nobody would know any more what is on the disk.
pub fn contain<T, E: From<Error>>(work: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    HOOK.call_once(|| {
        let loud = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if CONTAINED.get() { hear(panic.payload()) } else { loud(panic) }
        }));
    });
    let outer = CONTAINED.replace(true);
    let done = panic::catch_unwind(AssertUnwindSafe(work));
    CONTAINED.set(outer);
    done.unwrap_or_else(|_| Err(gave_up().into()))
}

fn hear(panic: &(dyn Any + Send)) {
    if SAID.with_borrow(Option::is_none) {
        SAID.set(Some(words(panic)));
    } else if let Some(say) = HOPELESS.get() {
        std::process::exit(say(gave_up()));
    }
}

fn gave_up() -> Error {
    Error::EnginePanicked { said: SAID.take().unwrap_or_default() }
}

fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    // An assertion prints what it compared on lines of their own.
    text.unwrap_or("it did not say why").split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_with_its_words() {
        let work = |what: &str| -> Result<u8, Error> {
            match what {
                "said" => panic!("over block {}", 7),
                "plain" => panic!("over a block"),
                "odd" => panic::panic_any(7),
                "error" => Err(Error::HeadMissing),
                _ => Ok(7),
            }
        };
        let said = |what| contain(|| work(what)).map_err(|error| error.to_string());
        let gives_up =
            |said: &str| Err(format!("the embedded store gave up over its files: {said}"));
        assert_eq!(said("said"), gives_up("over block 7"));
        assert_eq!(said("plain"), gives_up("over a block"));
        assert_eq!(said("odd"), gives_up("it did not say why"));
        assert_eq!(said("error"), Err(Error::HeadMissing.to_string()));
        assert_eq!(said(""), Ok(7));
        assert!(!CONTAINED.get());
    }
}

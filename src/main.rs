//! The program: parse, run, exit code.

use std::process::ExitCode;

/// Statements are allocated by one thread and freed by another.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    ExitCode::from(capstan::cli::run(std::env::args_os()))
}

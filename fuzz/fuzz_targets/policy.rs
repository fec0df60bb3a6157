//! A policy file parses or says where it is wrong; the text is kept as it was.
#![no_main]

use capstan::policy::Policy;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| match Policy::parse(text) {
    Ok(policy) => assert_eq!(policy.text(), text),
    Err(error) => assert!(!error.to_string().is_empty()),
});

use super::grammar::*;

type Fits = fn(&str) -> bool;
/// A form, what has it, and what has not.
type Case<'a> = (&'a str, Fits, &'a [&'a str], &'a [&'a str]);

fn check(cases: &[Case]) {
    for (name, fits, good, bad) in cases {
        good.iter().for_each(|text| assert!(fits(text), "{name}: {text:?}"));
        bad.iter().for_each(|text| assert!(!fits(text), "{name}: {text:?}"));
    }
}

#[test]
fn the_forms_of_identifiers() {
    let is_uuid: Fits = |text| uuid_version(text).is_some();
    let is_time: Fits = |text| Stamp::parse(text).is_some();
    let is_sequence: Fits = |text| sequence(text).is_some();
    let cases: [Case; 5] = [
        (
            "uuid",
            is_uuid,
            &["01939c6e-0000-7000-8000-000000000100", "00000000-0000-0000-0000-000000000001"],
            &["", "01939C6E-0000-7000-8000-000000000100", "01939c6e000070008000000000000100"],
        ),
        (
            "hash",
            is_hash,
            &["0000000000000000000000000000000000000000000000000000000000000000"],
            &["", "00", "000000000000000000000000000000000000000000000000000000000000000G"],
        ),
        (
            "sequence",
            is_sequence,
            &["0", "10", "18446744073709551615"],
            &["", "01", "+1", "-1", "1.0"],
        ),
        (
            "event type",
            is_event_type,
            &["a.b", "carp.resolution.completed", "x.y_z"],
            &["", "a", "a.", ".a", "a.B", "a.1", "a_b.c", "a..b"],
        ),
        (
            "time",
            is_time,
            &["2024-12-28T12:00:00Z", "2024-12-28T12:00:00.1+01:00", "2024-02-29T00:00:00-00:30"],
            &[
                "",
                "2024-12-28",
                "2023-02-29T00:00:00Z",
                "2024-12-28T12:00:00z",
                "2024-12-28t12:00:00Z",
                "+002024-12-28T12:00:00Z",
                "2024-12-28T12:00:00.Z",
                "2024-12-28T12:00:00,1Z",
                "é024-12-28T12:00:00Z",
                "2024-12-28T12:00:00é",
            ],
        ),
    ];
    check(&cases);
    assert_eq!(uuid_version("01939c6e-0000-7000-8000-000000000100"), Some(7));
}

#[test]
fn the_forms_of_versions() {
    let cases: [Case; 2] = [
        (
            "semver",
            is_semver,
            &["0.0.0", "1.2.3", "1.0.0-alpha.1", "1.0.0-0a", "1.0.0+build.01", "1.0.0-x-y.z+b"],
            &[
                "", "1", "1.0", "1.0.0.0", "01.0.0", "1.0.0-", "1.0.0-01", "1.0.0+", "v1.0.0",
                "1.0.-1",
            ],
        ),
        (
            "range",
            is_semver_range,
            &[
                "*",
                "1",
                "1.2",
                "1.x",
                "^1.2.3",
                "~1.2",
                ">=1.0.0 <2.0.0",
                ">=1.0.0, <2",
                "1.0.0 - 2.0.0",
                "^1 || ^2.0.0-rc.1",
            ],
            &["", "||", "latest", "^", ">", "1.2.3.4", "x.1", "=>1.0.0", "1.0.0 -", "^^1"],
        ),
    ];
    check(&cases);
}

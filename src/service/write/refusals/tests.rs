use super::*;

#[test]
fn the_file_stays_bounded_and_keeps_the_newest() {
    let data = tempfile::tempdir().unwrap();
    assert_eq!(refusals(data.path()).unwrap(), []);
    let ring = Ring::new(data.path().join(BY_POLICY));
    let refused = |n: usize| Refused {
        time: "2026-06-01T00:00:00Z".to_owned(),
        id: n.to_string(),
        issuer: "a".to_owned(),
        subject: "b".to_owned(),
        code: "policy-refused".to_owned(),
        text: "no".to_owned(),
        authentic: true,
    };
    for n in 0..=2 * KEPT {
        ring.append(&refused(n)).unwrap();
    }
    let kept = refusals(data.path()).unwrap();
    assert_eq!(kept.len(), KEPT);
    assert_eq!(kept.last(), Some(&refused(2 * KEPT)));
    // A new process counts what is there.
    let ring = Ring::new(data.path().join(BY_POLICY));
    ring.append(&refused(7)).unwrap();
    std::fs::OpenOptions::new()
        .append(true)
        .open(data.path().join(BY_POLICY))
        .and_then(|mut file| file.write_all(b"{\"time\":\"cut"))
        .unwrap();
    assert_eq!(refusals(data.path()).unwrap().len(), KEPT + 1);
}

use super::*;
use crate::envelope::Header;
use crate::profile::{Read, Record};
use crate::store::fixture::TestLog;
use crate::wire::budget::Allowance;

/// Two words that are never together but once, and take turns everywhere
/// else: the candidate moves down by one with every look at a word.
#[test]
fn search_over_budget_is_cut_and_continues() {
    TestLog::on_each_engine().iter().for_each(check_search_over_budget);
}

fn check_search_over_budget(log: &TestLog) {
    const SIZE: u64 = 4_000;
    let store = Store::create(log.create()).unwrap();
    let terms = |operator: Option<&str>, action_id: Option<&str>| {
        let (operator, action_id) = (operator.map(str::to_owned), action_id.map(str::to_owned));
        let summary = Summary { operator, action_id, ..Summary::default() };
        let read = Read { record: Record::Opaque, findings: Vec::new(), summary };
        Terms::of(&Header::default(), &read)
    };
    let both = terms(Some("even"), Some("odd"));
    let turns = [terms(Some("even"), None), terms(None, Some("odd"))];
    let others = (1..SIZE).map(|n| &turns[usize::from(n % 2 == 1)]);
    let group =
        Group::new(0, [&both].into_iter().chain(others), |_| Ok::<_, Error>(false)).unwrap();
    let time = (Term::time(UnixSeconds::new(1)).at(0), Vec::new());
    store.add_to_index(group.into_rows().chain([time]).collect()).unwrap();

    let cost = || Budget::new(Allowance { nodes: 0, edges: 20_000, bytes: 0 });
    let words = vec!["even".to_owned(), "odd".to_owned()];
    let mut query = Query { words, limit: 10, ..Query::default() };
    let mut cuts = 0;
    let last = loop {
        let page = store.search(&query, TreeSize::new(SIZE), &mut cost()).unwrap();
        if !page.is_cut {
            break page;
        }
        assert!(page.found.is_empty() && page.next < Some(SIZE), "{page:?}");
        assert!(page.next < query.before.or(Some(SIZE)), "it gets on");
        query.before = page.next;
        cuts += 1;
        assert!(cuts < SIZE, "it comes to an end");
    };
    assert!(cuts > 0, "it was cut at least once");
    let found = vec![LeafIndex::new(0)];
    assert_eq!(last, Page { found, next: None, is_cut: false });

    // In one field a look costs one seek, and the same question is cheap.
    let fields = vec![(Field::Operator, "even".to_owned()), (Field::ActionId, "odd".to_owned())];
    let query = Query { fields, limit: 10, ..Query::default() };
    assert_eq!(store.search(&query, TreeSize::new(SIZE), &mut cost()).unwrap(), last);
}

/// Values with a zero byte inside do not stand between the rows of a shorter
/// one: a search for that one costs no more, however many there are.
#[test]
fn value_with_a_zero_byte_is_not_between_rows_of_another() {
    let plain = Term::new(Field::Issuer, "x");
    let range = plain.at(0)..=plain.at(u64::MAX);
    for value in ["x\0", "x\0\0\0\0\0\0\0\x01", "x\0\0\0\0\0\0\0\x01and more"] {
        let row = Term::new(Field::Issuer, value).at(7);
        assert!(!range.contains(&row), "{value:?}");
    }
    assert_ne!(Term::new(Field::Issuer, "x\0"), Term::new(Field::Issuer, "x\0\0"));
}

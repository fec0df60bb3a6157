//! Points in time and windows of them, as certificates write them: RFC 3339
//! with an offset, to the nanosecond. No skew is granted.

/// A point in time.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Moment(jiff::Timestamp);

impl Moment {
    /// None for anything but `YYYY-MM-DDThh:mm:ss[.fraction](Z|±hh:mm)`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (date_time, rest) = text.split_at_checked(19)?;
        let fits = |text: &str, form: &str| {
            text.len() == form.len()
                && text.bytes().zip(form.bytes()).all(|(c, f)| match f {
                    b'0' => c.is_ascii_digit(),
                    f => c == f,
                })
        };
        let offset = match rest.strip_prefix('.') {
            None => rest,
            Some(fraction) => {
                let after = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
                (after.len() < fraction.len()).then_some(after)?
            }
        };
        let has_offset = ["Z", "+00:00", "-00:00"].iter().any(|form| fits(offset, form));
        let is_form = fits(date_time, "0000-00-00T00:00:00") && has_offset;
        is_form.then(|| text.parse().ok().map(Self)).flatten()
    }
}

/// Both ends belong to it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Window {
    pub(super) not_before: Moment,
    pub(super) not_after: Moment,
}

impl Window {
    pub(super) fn is_inverted(&self) -> bool {
        self.not_after < self.not_before
    }

    pub(super) fn holds(&self, moment: Moment) -> bool {
        self.not_before <= moment && moment <= self.not_after
    }
}

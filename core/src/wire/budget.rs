//! The cost limit of one read.
//!
//! A search or traversal charges its budget before every step. When the budget
//! is exhausted it stops, and the response is marked as truncated.

/// How much one read may cost.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Allowance {
    /// Statements read.
    pub nodes: usize,
    /// Links followed and index entries examined.
    pub edges: usize,
    /// Bytes of statements read, and of responses much larger than their input.
    pub bytes: usize,
}

/// Which limit was reached.
#[derive(Clone, Copy, Debug, Eq, PartialEq, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case", prefix = "budget-")]
pub enum BudgetExhausted {
    /// Too many statements.
    Nodes,
    /// Too many links.
    Edges,
    /// Too many bytes.
    Bytes,
}

impl BudgetExhausted {
    /// The stable code.
    pub fn code(self) -> &'static str {
        self.into()
    }
}

/// What is left of an allowance.
#[derive(Debug)]
pub struct Budget {
    allowance: Allowance,
    left: Allowance,
    exhausted: Option<BudgetExhausted>,
}

impl Budget {
    /// A full budget.
    pub fn new(allowance: Allowance) -> Self {
        Self { allowance, left: allowance, exhausted: None }
    }

    /// For facts that a decision needs complete; never for read requests.
    pub fn unlimited() -> Self {
        let (nodes, edges, bytes) = (usize::MAX, usize::MAX, usize::MAX);
        Self::new(Allowance { nodes, edges, bytes })
    }

    /// A full budget of the same size, for the second part of a response.
    pub fn renewed(&self) -> Self {
        Self::new(self.allowance)
    }

    /// Charges one statement. Its bytes are charged by `read` once the length
    /// is known, so the last statement may exceed the byte limit.
    pub fn node(&mut self) -> Result<(), BudgetExhausted> {
        if self.left.bytes == 0 {
            return Err(self.end(BudgetExhausted::Bytes));
        }
        match self.left.nodes.checked_sub(1) {
            Some(left) => self.left.nodes = left,
            None => return Err(self.end(BudgetExhausted::Nodes)),
        }
        Ok(())
    }

    /// Charges `count` links, all or none.
    pub fn edges(&mut self, count: usize) -> Result<(), BudgetExhausted> {
        match self.left.edges.checked_sub(count) {
            Some(left) => self.left.edges = left,
            None => return Err(self.end(BudgetExhausted::Edges)),
        }
        Ok(())
    }

    /// Charges bytes that were already read.
    pub fn read(&mut self, bytes: usize) {
        self.left.bytes = self.left.bytes.saturating_sub(bytes);
    }

    /// Charges bytes of a response, all or none.
    pub fn write(&mut self, bytes: usize) -> Result<(), BudgetExhausted> {
        match self.left.bytes.checked_sub(bytes) {
            Some(left) => self.left.bytes = left,
            None => return Err(self.end(BudgetExhausted::Bytes)),
        }
        Ok(())
    }

    /// The limit that was reached first.
    pub fn exhausted(&self) -> Option<BudgetExhausted> {
        self.exhausted
    }

    fn end(&mut self, limit: BudgetExhausted) -> BudgetExhausted {
        self.exhausted.get_or_insert(limit);
        limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budget_reports_what_ran_out() {
        let allowance = Allowance { nodes: 2, edges: 3, bytes: 100 };
        let mut budget = Budget::new(allowance);
        assert_eq!((budget.node(), budget.edges(3)), (Ok(()), Ok(())));
        assert_eq!(budget.exhausted(), None, "no charge failed");
        assert_eq!(budget.edges(1), Err(BudgetExhausted::Edges));
        assert_eq!(
            (budget.node(), budget.write(1)),
            (Ok(()), Ok(())),
            "the other limits are not reached"
        );
        assert_eq!(
            (budget.node(), budget.exhausted()),
            (Err(BudgetExhausted::Nodes), Some(BudgetExhausted::Edges))
        );

        let mut budget = budget.renewed();
        assert_eq!((budget.node(), budget.node()), (Ok(()), Ok(())));
        assert_eq!(budget.node(), Err(BudgetExhausted::Nodes));

        let mut budget = Budget::new(allowance);
        assert_eq!(budget.node(), Ok(()));
        budget.read(1000);
        assert_eq!(
            budget.node(),
            Err(BudgetExhausted::Bytes),
            "one statement may exceed the limit, the next is refused"
        );
        let mut budget = Budget::new(allowance);
        assert_eq!((budget.write(100), budget.write(1)), (Ok(()), Err(BudgetExhausted::Bytes)));
        let codes = [BudgetExhausted::Nodes, BudgetExhausted::Edges, BudgetExhausted::Bytes]
            .map(BudgetExhausted::code);
        assert_eq!(codes, ["budget-nodes", "budget-edges", "budget-bytes"]);
    }
}

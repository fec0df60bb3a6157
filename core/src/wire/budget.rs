//! What one read may cost.
//!
//! Whoever follows links through a log, or looks through it, is given a budget
//! and pays for every step before taking it. When something is spent the walk
//! ends, and its answer says so.

/// How much of everything.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Allowance {
    /// Statements that are read.
    pub nodes: usize,
    /// Links that are followed, and places of the index that are looked at.
    pub edges: usize,
    /// Bytes of the statements that are read, and of answers much larger than
    /// what they are made of.
    pub bytes: usize,
}

/// What ran out.
#[derive(Clone, Copy, Debug, Eq, PartialEq, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case", prefix = "budget-")]
pub enum Spent {
    /// Too many statements.
    Nodes,
    /// Too many links.
    Edges,
    /// Too many bytes.
    Bytes,
}

impl Spent {
    /// Its stable code.
    pub fn code(self) -> &'static str {
        self.into()
    }
}

/// What is left of an allowance. There is no walk without one: everything that
/// walks takes it as an argument.
#[derive(Debug)]
pub struct Budget {
    allowance: Allowance,
    left: Allowance,
    spent: Option<Spent>,
}

impl Budget {
    /// A budget of so much.
    pub fn new(allowance: Allowance) -> Self {
        Self { allowance, left: allowance, spent: None }
    }

    /// For what must be whole or fail: the facts a decision rests on. Nothing
    /// that answers a reader may have it.
    pub fn unlimited() -> Self {
        let (nodes, edges, bytes) = (usize::MAX, usize::MAX, usize::MAX);
        Self::new(Allowance { nodes, edges, bytes })
    }

    /// The same allowance once more, for the second part of an answer.
    pub fn renewed(&self) -> Self {
        Self::new(self.allowance)
    }

    /// Pays for reading one statement; what it holds is paid for when its
    /// length is known, so the last one may exceed the bytes.
    pub fn node(&mut self) -> Result<(), Spent> {
        if self.left.bytes == 0 {
            return Err(self.end(Spent::Bytes));
        }
        match self.left.nodes.checked_sub(1) {
            Some(left) => self.left.nodes = left,
            None => return Err(self.end(Spent::Nodes)),
        }
        Ok(())
    }

    /// Pays for so many links, all or none.
    pub fn edges(&mut self, count: usize) -> Result<(), Spent> {
        match self.left.edges.checked_sub(count) {
            Some(left) => self.left.edges = left,
            None => return Err(self.end(Spent::Edges)),
        }
        Ok(())
    }

    /// Pays for so many bytes that are there already.
    pub fn read(&mut self, bytes: usize) {
        self.left.bytes = self.left.bytes.saturating_sub(bytes);
    }

    /// Pays for so many bytes of an answer, all or none.
    pub fn write(&mut self, bytes: usize) -> Result<(), Spent> {
        match self.left.bytes.checked_sub(bytes) {
            Some(left) => self.left.bytes = left,
            None => return Err(self.end(Spent::Bytes)),
        }
        Ok(())
    }

    /// What ran out first, when somebody asked for more of it.
    pub fn spent(&self) -> Option<Spent> {
        self.spent
    }

    fn end(&mut self, spent: Spent) -> Spent {
        self.spent.get_or_insert(spent);
        spent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_spent_and_remembers_on_what() {
        let allowance = Allowance { nodes: 2, edges: 3, bytes: 100 };
        let mut budget = Budget::new(allowance);
        assert_eq!((budget.node(), budget.edges(3)), (Ok(()), Ok(())));
        assert_eq!(budget.spent(), None, "nobody asked for more");
        assert_eq!(budget.edges(1), Err(Spent::Edges));
        assert_eq!((budget.node(), budget.write(1)), (Ok(()), Ok(())), "these are left");
        assert_eq!((budget.node(), budget.spent()), (Err(Spent::Nodes), Some(Spent::Edges)));

        let mut budget = budget.renewed();
        assert_eq!((budget.node(), budget.node()), (Ok(()), Ok(())));
        assert_eq!(budget.node(), Err(Spent::Nodes));

        let mut budget = Budget::new(allowance);
        assert_eq!(budget.node(), Ok(()));
        budget.read(1000);
        assert_eq!(budget.node(), Err(Spent::Bytes), "the first may be larger, there is no second");
        let mut budget = Budget::new(allowance);
        assert_eq!((budget.write(100), budget.write(1)), (Ok(()), Err(Spent::Bytes)));
        let codes = [Spent::Nodes, Spent::Edges, Spent::Bytes].map(Spent::code);
        assert_eq!(codes, ["budget-nodes", "budget-edges", "budget-bytes"]);
    }
}

//! One attempt at a `transact` request: operations in order, then the commit, and the text of the
//! result (docs/spec/protocol.md 5.1).
//!
//! Every attempt starts from scratch, so a request that waits can be tried again with the same
//! parameters. After any outcome the database is in the state before or after the commit, never
//! between.

use corvid_data::{Arc, ColumnId, Delta, Row, TableId, Tag, WireError};
use smallvec::SmallVec;

use crate::commit::Refusal;
use crate::condition::Condition;
use crate::context::{Context, Identity, LockOwner, Outcome, ReadSet};
use crate::database::Database;
use crate::lookup::{self, Slots};
use crate::names::Names;
use crate::operation::{self, Effect, Operation};
use crate::operations::Operations;
use crate::selection::{self, DeferredSelection};
use crate::table;
use crate::tally::Tally;
use crate::transaction::Transaction;
use crate::work_budget::{self, TooLong, WorkBudget};

/// Limit on the length of deferred repeated selections in a transaction with changes, in bytes.
/// Measuring that much takes about 100 ms, during which the database does nothing else.
const MEASURED_BYTES_MAX: usize = 32 << 20;

/// Limit on the bytes allocated for a result in advance: operations are seldom shorter than their
/// results.
const RESULT_BYTES: usize = 1024;

/// The properties of the requesting session.
pub(crate) struct Requester<'a> {
    /// Milliseconds since the request arrived.
    pub(crate) elapsed_ms: u64,
    /// Operations that write are refused.
    pub(crate) is_read_only: bool,
    /// Each of these identities must be allowed the operations.
    pub(crate) identities: &'a [Identity<'a>],
    /// The request may be kept until a `wait` is satisfied.
    pub(crate) can_wait: bool,
    /// The locks of the session.
    pub(crate) locks: &'a dyn LockOwner,
}

impl Requester<'_> {
    /// Whether the permissions of a role decide about operations that write.
    fn has_role(&self) -> bool {
        let mut identities = self.identities.iter();
        identities.any(|identity| !identity.role.is_empty())
    }
}

/// An execution in progress.
pub(crate) struct Execution<'e, 'd> {
    /// The changes so far.
    pub(crate) txn: Transaction<'d>,
    /// Named rows and fresh UUIDs.
    pub(crate) names: Names<'e>,
    /// The requesting session.
    pub(crate) requester: Requester<'e>,
    /// Texts of the `comment` operations so far, joined by LF.
    pub(crate) comment: String,
    /// The operations so far include a `commit` with `durable: true`.
    pub(crate) is_durable: bool,
    /// The smallest `timeout` of the waits so far.
    pub(crate) deadline_ms: Option<u64>,
    /// The rows and other state that the operations so far depend on.
    pub(crate) reads: ReadSet,
    /// The result so far.
    pub(crate) out: Vec<u8>,
    /// The selections that are missing in the result.
    pub(crate) deferred_selections: Vec<DeferredSelection>,
    /// Tables from which rows were selected.
    selected: SmallVec<[TableId; 4]>,
    /// Bytes of the result so far that repeat a selection from the same table.
    repeated_bytes: usize,
    tally: Tally,
}

/// Why an operation does not succeed.
pub(crate) enum Failure {
    /// The operation failed, and with it the transaction.
    Error(WireError),
    /// The operation waits for the database to change.
    Blocked,
    /// The operation does not fit into the budget.
    TooLong,
}

impl From<WireError> for Failure {
    fn from(error: WireError) -> Failure {
        Failure::Error(error)
    }
}

impl From<TooLong> for Failure {
    fn from(TooLong: TooLong) -> Failure {
        Failure::TooLong
    }
}

/// Executes `params`, the raw text of an array whose first element is the name of the database.
pub(crate) fn execute(
    database: &mut Database,
    params: &[u8],
    context: &mut Context<'_>,
    budget: &mut WorkBudget,
) -> Result<Outcome, TooLong> {
    // A transaction that is certainly too long is not started. The exact number of operations costs
    // a pass over the text, so it is counted only if the upper bound does not fit.
    if budget
        .check_least_cost(Operations::count_max(params), params.len())
        .is_err()
    {
        budget.check_least_cost(Operations::count(params), params.len())?;
    }
    // Moved out, because the execution borrows the rest of the database.
    let mut strings = std::mem::take(&mut database.strings);
    let seed = database.seed;
    let mut txn = Transaction::begin(database);
    txn.budget = *budget;
    let execution = Execution {
        txn,
        names: Names::new(&mut *context.uuids, &mut strings, params, seed),
        requester: Requester {
            elapsed_ms: context.elapsed_ms,
            is_read_only: context.read_only,
            identities: context.identities,
            can_wait: context.can_wait,
            locks: context.locks,
        },
        comment: String::new(),
        is_durable: false,
        deadline_ms: None,
        reads: ReadSet::Rows(SmallVec::new()),
        out: Vec::with_capacity(RESULT_BYTES.min(params.len())),
        deferred_selections: Vec::new(),
        selected: SmallVec::new(),
        repeated_bytes: 0,
        tally: Tally::default(),
    };
    let outcome = execution.run(Operations::new(params), budget);
    database.strings = strings;
    outcome
}

/// The error of a transaction whose selections are too long for a reply.
fn too_much_selected() -> WireError {
    let details = "unread replies of all clients take too much memory";
    WireError::new(Tag::ResourcesExhausted, details)
}

impl Execution<'_, '_> {
    /// Runs the operations and commits. Subtracts the work from `budget`.
    fn run(
        mut self,
        mut operations: Operations<'_>,
        budget: &mut WorkBudget,
    ) -> Result<Outcome, TooLong> {
        self.out.push(b'[');
        while operations.advance() {
            if operations.number() > 1 {
                self.out.push(b',');
            }
            // A failed operation's partial result is cut off at `start`, and its error takes that
            // place.
            let start = self.out.len();
            let outcome = self.run_one(&mut operations);
            *budget = self.txn.budget;
            match outcome {
                Ok(()) => {}
                Err(Failure::Blocked) => {
                    self.txn.rollback();
                    return Ok(Outcome::Blocked {
                        deadline_ms: self.deadline_ms,
                        reads: self.reads,
                    });
                }
                Err(Failure::TooLong) => {
                    self.txn.rollback();
                    return Err(TooLong);
                }
                Err(Failure::Error(error)) => {
                    self.out.truncate(start);
                    return Ok(self.fail(&error, operations.untried()));
                }
            }
        }
        self.commit(operations.number())
    }

    fn run_one(&mut self, operations: &mut Operations<'_>) -> Result<(), Failure> {
        self.txn.budget.spend(work_budget::OPERATION)?;
        let (members, bytes) = operations.split();
        self.txn.budget.read(bytes)?;
        let schema = Arc::clone(self.txn.schema());
        let operation = Operation::parse(&schema, operations.what(), members?)?;
        let kind = operation.kind();
        self.tally.operations[kind as usize] += 1;
        let is_writing = kind.is_writing();
        // Recorded before the execution: a later `wait` may block the transaction, and the outcome
        // of the next attempt depends on every operation up to that wait.
        let depends_on_role = kind.changes_rows() && self.requester.has_role();
        if depends_on_role || kind.effect() == Effect::Asserts {
            self.reads = ReadSet::Anything;
        } else if let Some(table) = operation.depends_on() {
            self.reads.add(table, None);
        }
        operation.execute(self)?;
        // Checked last, because all other errors of the operation have precedence.
        if is_writing && self.requester.is_read_only {
            let name = kind.name();
            let details =
                format!("{name} operation not allowed when database server is in read only mode");
            return Err(WireError::new(Tag::NotAllowed, details).into());
        }
        Ok(())
    }

    /// Ends with an operation's error, followed by a null for each operation that was not tried.
    fn fail(mut self, error: &WireError, untried: usize) -> Outcome {
        self.txn.rollback();
        self.tally.error = Some(error.tag);
        error.write_json(&mut self.out);
        for _ in 0..untried {
            self.out.extend_from_slice(b",null");
        }
        self.out.push(b']');
        Outcome::Done {
            result: self.out,
            deferred_selections: self.deferred_selections,
            deferred_bytes: 0,
            delta: None,
            durable: false,
            tally: self.tally,
        }
    }

    fn commit(mut self, count: usize) -> Result<Outcome, TooLong> {
        // Measured before the commit. Once the changes are committed, the reply can no longer
        // refuse them.
        let deferred_bytes = match self.measure_deferred() {
            Ok(bytes) => bytes,
            Err(error) => {
                // The selections are too long for a reply: the transaction fails as if its first
                // operation did.
                self.deferred_selections.clear();
                self.out.truncate(1);
                return Ok(self.fail(&error, count - 1));
            }
        };
        let Execution {
            txn,
            mut names,
            comment,
            is_durable,
            mut out,
            deferred_selections,
            mut tally,
            ..
        } = self;
        let (delta, durable) = match crate::commit::commit_within(txn, names.source()) {
            Ok(delta) if delta.is_empty() => (None, is_durable),
            Ok(delta) => {
                let delta = Delta {
                    // The commit does not know these two: they come from operations.
                    comment,
                    durable: is_durable,
                    ..delta
                };
                (Some(Arc::new(delta)), is_durable)
            }
            Err(Refusal::TooLong) => return Err(TooLong),
            Err(Refusal::Error(error)) => {
                if count > 0 {
                    out.push(b',');
                }
                error.write_json(&mut out);
                tally.error = Some(error.tag);
                tally.has_failed_at_commit = true;
                (None, false)
            }
        };
        out.push(b']');
        Ok(Outcome::Done {
            result: out,
            deferred_selections,
            deferred_bytes,
            delta,
            durable,
            tally,
        })
    }

    /// Records a selection from a table. Returns whether there was an earlier one.
    pub(crate) fn record_selection(&mut self, table: TableId) -> bool {
        let is_repeated = self.selected.contains(&table);
        if !is_repeated {
            self.selected.push(table);
        }
        is_repeated
    }

    /// Counts the bytes of a selection that was just written, from `start` in the result.
    ///
    /// # Errors
    /// The result is too long, or the part of it that repeats earlier selections is.
    pub(crate) fn count_selected(
        &mut self,
        start: usize,
        is_repeated: bool,
    ) -> Result<(), WireError> {
        if self.out.len() > self.txn.budget.result_bytes() {
            return Err(too_much_selected());
        }
        if is_repeated {
            self.count_repeated(self.out.len() - start)?;
        }
        Ok(())
    }

    /// Counts bytes of the result that repeat an earlier selection.
    ///
    /// # Errors
    /// Together the repeated bytes are too many.
    fn count_repeated(&mut self, bytes: usize) -> Result<(), WireError> {
        self.repeated_bytes += bytes;
        if self.repeated_bytes > self.txn.budget.repeated_bytes() {
            return Err(too_much_selected());
        }
        Ok(())
    }

    /// Measures the deferred selections that repeat others, in bytes. Only in a transaction with
    /// changes: once it is committed, its result can no longer be refused.
    ///
    /// # Errors
    /// The selections are too long.
    fn measure_deferred(&mut self) -> Result<usize, WireError> {
        if self.deferred_selections.is_empty() || self.txn.journal.rows().is_empty() {
            return Ok(0);
        }
        let max = MEASURED_BYTES_MAX.min(self.txn.budget.repeated_bytes());
        let bytes = selection::repeated_bytes(&self.deferred_selections, max);
        self.count_repeated(bytes)?;
        if bytes > max {
            return Err(too_much_selected());
        }
        Ok(bytes)
    }

    /// Parses the `where` of an operation.
    pub(crate) fn read_condition(
        &mut self,
        table: TableId,
        raw: &[u8],
    ) -> Result<Condition, WireError> {
        let database = &*self.txn.database;
        let schema = database.schema.table(table);
        Condition::parse(schema, raw, Some(&mut self.names), database.seed)
    }

    /// The rows that a condition matches now.
    ///
    /// # Errors
    /// Finding the rows needs more than the budget.
    pub(crate) fn matching(
        &mut self,
        table: TableId,
        condition: &Condition,
    ) -> Result<Slots, TooLong> {
        let Transaction {
            database, budget, ..
        } = &mut self.txn;
        let found = lookup::matching_by_key(&database.tables[usize::from(table.0)], condition);
        if let Some(found) = found {
            return Ok(found);
        }
        if !condition.clauses.is_empty() {
            database.count_walk(table, condition);
        }
        lookup::matching_all(&database.tables[usize::from(table.0)], condition, budget)
    }

    /// Spends a step for every atom of the rows at `slots`, and `each` for every row.
    ///
    /// # Errors
    /// The budget has fewer steps.
    pub(crate) fn spend_on(
        &mut self,
        table: TableId,
        slots: &Slots,
        each: u64,
    ) -> Result<(), TooLong> {
        let Transaction {
            database, budget, ..
        } = &mut self.txn;
        budget.spend(each.saturating_mul(slots.len() as u64))?;
        let table = &database.tables[usize::from(table.0)];
        for slot in slots {
            budget.spend(table::row_atoms(table.at(*slot)))?;
        }
        Ok(())
    }

    /// Spends the cost of changing the rows at `slots`, and of reading the elements of these
    /// `columns`.
    ///
    /// # Errors
    /// The budget has fewer steps.
    pub(crate) fn spend_on_columns(
        &mut self,
        table: TableId,
        slots: &Slots,
        columns: &(impl Iterator<Item = ColumnId> + Clone),
    ) -> Result<(), TooLong> {
        let Transaction {
            database, budget, ..
        } = &mut self.txn;
        budget.spend(work_budget::CHANGE.saturating_mul(slots.len() as u64))?;
        let table = &database.tables[usize::from(table.0)];
        for slot in slots {
            let row = table.at(*slot);
            for column in columns.clone().filter(|column| !column.is_standard()) {
                budget.spend(row.columns[usize::from(column.0)].len() as u64)?;
            }
        }
        Ok(())
    }

    /// The rows at `slots`.
    pub(crate) fn rows<'s>(
        &'s self,
        table: TableId,
        slots: &'s Slots,
    ) -> impl Iterator<Item = &'s Row> + Clone + 's {
        let table = self.txn.table(table);
        slots.iter().map(move |slot| &**table.at(*slot))
    }

    /// Appends `{"count":N}`.
    pub(crate) fn write_count(&mut self, count: usize) {
        operation::write_count(&mut self.out, count);
    }
}

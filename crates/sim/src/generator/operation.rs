//! Random transactions. Tables and names are planned first, so that references may point forward,
//! backward and in circles.

use corvid_json::{Object, Value};

use super::Generator;
use corvid_model::atom::Kind;
use corvid_model::schema::Type;

/// The kind of a planned operation.
#[derive(Clone)]
struct Plan {
    op: &'static str,
    table: String,
    name: Option<String>,
}

pub(super) fn transaction(generator: &mut Generator) -> Vec<Value> {
    let plans = generator.plans();
    generator.names = plans
        .iter()
        .filter_map(|plan| Some((plan.table.clone(), plan.name.clone()?)))
        .collect();
    let operations = plans.iter().map(|plan| {
        let operation = generator.operation(plan);
        if generator.dice.chance(generator.profile.damage_percent) {
            generator.damaged(&operation)
        } else {
            operation
        }
    });
    let operations = operations.collect();
    generator.names.clear();
    operations
}

fn object(members: Vec<(&str, Value)>) -> Value {
    Value::Object(
        members
            .into_iter()
            .map(|(name, value)| (name.into(), value))
            .collect::<Object>(),
    )
}

impl Generator {
    fn plans(&mut self) -> Vec<Plan> {
        let mut plans = Vec::new();
        for number in 0..1 + self.dice.below(4) {
            let op = *self.dice.pick(&[
                "insert", "insert", "insert", "insert", "insert", "update", "update", "update",
                "mutate", "mutate", "mutate", "delete", "select", "select", "wait", "comment",
            ]);
            let table = self.table();
            let mut plan = Plan {
                op,
                table,
                name: None,
            };
            if op == "insert" {
                let is_root = self.schema.tables[&plan.table].is_root;
                if self.dice.chance(if is_root { 40 } else { 85 }) {
                    plan.name = Some(format!("n{number}"));
                }
                // Without a reference, a row of a non-root table is garbage at once.
                if !is_root && self.dice.chance(85) {
                    let holder = self.holder(&plan.table);
                    let op = *self.dice.pick(&["insert", "mutate", "update"]);
                    let held_by = Plan {
                        op,
                        table: holder,
                        name: None,
                    };
                    let position = self.dice.below(plans.len() + 1);
                    plans.insert(position, held_by);
                }
            }
            plans.push(plan);
        }
        if self.dice.chance(8) {
            let op = *self.dice.pick(&["abort", "assert", "commit", "commit"]);
            let position = self.dice.below(plans.len() + 1);
            plans.insert(
                position,
                Plan {
                    op,
                    table: "T0".to_owned(),
                    name: None,
                },
            );
        }
        if self.profile.suits_reference {
            keep_deletions_alone(&mut plans);
        }
        plans
    }

    /// Whether weak references point to a table. The reference loses some of them if several rows
    /// of the table are deleted at once.
    fn is_weak_target(&self, target: &str) -> bool {
        let points = |ty: &Type| {
            ty.references()
                .any(|(_, reference)| !reference.is_strong && reference.table == target)
        };
        self.schema
            .tables
            .values()
            .any(|table| table.columns.values().any(|column| points(&column.ty)))
    }

    /// Returns a condition that at most one row matches.
    fn condition_on_one(&mut self, table: &str) -> Value {
        let uuid = Value::Array(vec![
            Value::string("uuid"),
            Value::string(self.known_uuid(table)),
        ]);
        Value::Array(vec![Value::Array(vec![
            Value::string("_uuid"),
            Value::string("=="),
            uuid,
        ])])
    }

    /// Returns a table with a strong reference to another.
    fn holder(&mut self, target: &str) -> String {
        let holds = |ty: &Type| {
            ty.references()
                .any(|(_, reference)| reference.is_strong && reference.table == target)
        };
        let tables = self.schema.tables.iter();
        let holders: Vec<String> = tables
            .filter(|(_, table)| table.columns.values().any(|column| holds(&column.ty)))
            .map(|(name, _)| name.clone())
            .collect();
        self.dice.pick(&holders).clone()
    }

    fn operation(&mut self, plan: &Plan) -> Value {
        let table = plan.table.clone();
        let mut members = vec![("op", Value::string(plan.op))];
        if matches!(
            plan.op,
            "insert" | "select" | "update" | "mutate" | "delete" | "wait"
        ) {
            members.push(("table", Value::string(&table)));
        }
        if matches!(plan.op, "select" | "update" | "mutate" | "delete" | "wait") {
            let is_lone =
                plan.op == "delete" && self.profile.suits_reference && self.is_weak_target(&table);
            let condition = if is_lone {
                self.condition_on_one(&table)
            } else {
                self.condition(&table)
            };
            members.push(("where", condition));
        }
        match plan.op {
            "insert" => {
                members.push(("row", self.row(&table, true)));
                if let Some(name) = &plan.name {
                    members.push(("uuid-name", Value::string(name)));
                } else if self.dice.chance(1) {
                    members.push(("uuid-name", Value::string("n0")));
                }
                // With an explicit UUID, the reference binds earlier mentions of the name to
                // another row.
                let is_misbound = plan.name.is_some() && self.profile.suits_reference;
                if self.dice.chance(70) && !is_misbound {
                    let uuid = self.free_uuid(&table);
                    members.push(("uuid", Value::string(uuid)));
                }
            }
            "update" => members.push(("row", self.row(&table, false))),
            "mutate" => {
                let count = *self.dice.pick(&[0, 1, 1, 1, 2, 3]);
                let mutations = (0..count).map(|_| self.mutation(&table)).collect();
                members.push(("mutations", Value::Array(mutations)));
            }
            "select" => self.add_select(&table, &mut members),
            "wait" => self.add_wait(&table, &mut members),
            "comment" => members.push(("comment", Value::string("a comment"))),
            "commit" => members.push(("durable", Value::Bool(self.dice.chance(10)))),
            "assert" => {
                let lock = *self.dice.pick(&["mine", "other"]);
                members.push(("lock", Value::string(lock)));
            }
            _ => {}
        }
        object(members)
    }

    /// Returns a UUID that is mostly unused.
    fn free_uuid(&mut self, table: &str) -> String {
        let taken = self.rows.get(table).cloned().unwrap_or_default();
        let mut uuid = self.invented_uuid(table);
        for _ in 0..6 {
            if !taken.contains(&uuid) {
                break;
            }
            uuid = self.invented_uuid(table);
        }
        uuid
    }

    /// Returns a row object. An insert always has the columns whose default is not allowed.
    fn row(&mut self, table: &str, is_insert: bool) -> Value {
        let columns = self.schema.tables[table].columns.clone();
        let mut members = Object::new();
        for (name, column) in columns {
            let is_reference = column.ty.references().next().is_some();
            let needs = column.ty.default().check(&column.ty).is_err()
                || (is_reference && column.ty.min > 0);
            let is_given = if is_insert {
                (needs && self.dice.chance(98))
                    || self.dice.chance(if is_reference { 70 } else { 50 })
            } else {
                self.dice.chance(30) && (column.is_mutable || self.dice.chance(5))
            };
            if name == "id" && (is_insert || self.dice.chance(8)) {
                members.insert("id".into(), Value::Integer(self.dice.between(0, 300)));
            } else if is_given && name != "id" {
                members.insert(name.into(), self.datum(&column.ty));
            }
        }
        if self.dice.chance(1) {
            let uuid = self.invented_uuid(table);
            let uuid = Value::Array(vec![Value::string("uuid"), Value::string(uuid)]);
            members.insert("_version".into(), uuid);
        }
        Value::Object(members)
    }

    fn mutation(&mut self, table: &str) -> Value {
        let column = self.column(table);
        let schema = self.schema.tables[table].columns[&column].clone();
        let ty = schema.ty;
        let is_number = matches!(ty.key.kind, Kind::Integer | Kind::Real) && ty.value.is_none();
        let is_wrong = self.dice.chance(4);
        let mutator = if is_wrong {
            *self.dice.pick(&["+=", "insert", "delete", "%="])
        } else if is_number && (ty.is_scalar() || self.dice.chance(40)) {
            *self.dice.pick(&["+=", "-=", "*=", "/=", "%="])
        } else if ty.is_scalar() {
            return Value::Array(vec![
                Value::string("id"),
                Value::string("+="),
                Value::Integer(self.dice.between(1, 60)),
            ]);
        } else {
            *self.dice.pick(&["insert", "insert", "delete"])
        };
        let argument = match mutator {
            "insert" => self.datum(&ty.limited(0, ty.max)),
            "delete" if ty.value.is_some() && self.dice.chance(50) => {
                let keys = Type {
                    value: None,
                    ..ty.limited(0, 3)
                };
                self.datum(&keys)
            }
            "delete" => self.datum(&ty.limited(0, ty.max.max(3))),
            "/=" | "*=" if self.profile.keeps_reals_exact && ty.key.kind == Kind::Real => {
                Value::Integer(1)
            }
            _ if self.profile.keeps_reals_exact && ty.key.kind == Kind::Real => {
                Value::Real(*self.dice.pick(&[0.5, 2.0, 1.5]))
            }
            _ if self.profile.suits_reference => Value::Integer(*self.dice.pick(&[1, 2, 3, 2, 5])),
            _ if ty.key.kind == Kind::Real => {
                Value::Real(*self.dice.pick(&[-1.5, 0.5, 2.0, 3.0, 1e300, 0.0, -1.0]))
            }
            _ => {
                let operands = [1, 2, 3, -1, -2, 0, 7, i64::MAX, i64::MIN, 1 << 40];
                Value::Integer(*self.dice.pick(&operands))
            }
        };
        Value::Array(vec![
            Value::string(column),
            Value::string(mutator),
            argument,
        ])
    }

    /// Returns some columns, each once.
    fn column_names(&mut self, table: &str) -> Vec<Value> {
        let mut names = self.schema.tables[table].column_names();
        names.retain(|name| name != "_version");
        let mut columns = Vec::new();
        for name in names {
            if self.dice.chance(40) {
                columns.push(Value::string(name));
            }
        }
        columns
    }

    fn add_select(&mut self, table: &str, members: &mut Vec<(&str, Value)>) {
        if self.dice.chance(75) {
            let columns = self.column_names(table);
            members.push(("columns", Value::Array(columns)));
        }
        if self.dice.chance(30) {
            let sort = self.column_names(table);
            members.push(("sort", Value::Array(sort)));
        }
    }

    /// Adds a wait, mostly a satisfied one. The generator does not know the rows, so the wait tests
    /// for a difference, or whether any row matches.
    fn add_wait(&mut self, table: &str, members: &mut Vec<(&str, Value)>) {
        let columns = self.column_names(table);
        let (until, count) = match self.dice.below(10) {
            0..7 => ("!=", self.dice.below(3)),
            _ => ("==", self.dice.below(2)),
        };
        let rows: Vec<Value> = (0..count).map(|_| self.row(table, true)).collect();
        members.push(("columns", Value::Array(columns)));
        members.push(("until", Value::string(until)));
        members.push(("rows", Value::Array(rows)));
        if !self.profile.suits_reference && self.dice.chance(20) {
            members.push(("timeout", Value::Integer(self.dice.between(-1, 50))));
        } else {
            members.push(("timeout", Value::Integer(0)));
        }
    }
}

/// Makes a deletion the only write of its transaction. The reference loses weak references of rows
/// that change in the same transaction in which their targets are deleted.
fn keep_deletions_alone(plans: &mut Vec<Plan>) {
    let is_write = |plan: &Plan| matches!(plan.op, "insert" | "update" | "mutate" | "delete");
    if let Some(first) = plans.iter().position(|plan| plan.op == "delete") {
        let deletion = plans[first].clone();
        plans.retain(|plan| !is_write(plan));
        plans.push(deletion);
    }
}

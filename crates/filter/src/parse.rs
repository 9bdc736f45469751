//! Expressions from text: `or` binds least, then `and`, then `not`.

use std::cmp::Ordering;

use corvid_data::{Atom, AtomType, BaseType, ColumnId, Datum, TableId, text};

use crate::compare::{Comparison, Test, is_set};
use crate::pattern::Pattern;
use crate::token::{Token, tokens};
use crate::{Fault, Names, Where};

/// Parses an expression about the rows of a table. Names of rows that columns refer to are looked
/// up.
///
/// # Errors
/// The text is not such an expression, or a row does not exist.
pub fn parse<N: Names>(names: &mut N, table: TableId, text: &str) -> Result<Where, N::Error> {
    let tokens = tokens(text).map_err(|error| names.fault(Fault::Form(error)))?;
    let mut parser = Parser {
        names,
        table,
        tokens,
        at: 0,
        depth: 0,
    };
    let parsed = parser.any()?;
    match parser.next() {
        None => Ok(parsed),
        Some(token) => Err(parser.unexpected(Some(&token), "\"and\" or \"or\"")),
    }
}

/// The deepest nesting of parentheses and `not`.
const DEPTH_MAX: usize = 100;

struct Parser<'n, N> {
    names: &'n mut N,
    table: TableId,
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
}

impl<N: Names> Parser<'_, N> {
    fn next(&mut self) -> Option<Token> {
        let token = self.tokens.get(self.at).cloned();
        self.at += 1;
        token
    }

    /// Moves past a word or sign, if it comes next.
    fn skips(&mut self, wanted: &str) -> bool {
        let is_next = match self.tokens.get(self.at) {
            Some(Token::Word(word)) => word.eq_ignore_ascii_case(wanted),
            Some(Token::Sign(sign)) => *sign == wanted,
            _ => false,
        };
        self.at += usize::from(is_next);
        is_next
    }

    fn any(&mut self) -> Result<Where, N::Error> {
        let mut parts = vec![self.all()?];
        while self.skips("or") {
            parts.push(self.all()?);
        }
        Ok(match parts.len() {
            1 => parts.remove(0),
            _ => Where::Or(parts),
        })
    }

    fn all(&mut self) -> Result<Where, N::Error> {
        let mut parts = vec![self.one()?];
        while self.skips("and") {
            parts.push(self.one()?);
        }
        Ok(match parts.len() {
            1 => parts.remove(0),
            _ => Where::And(parts),
        })
    }

    fn one(&mut self) -> Result<Where, N::Error> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.form("the expression is nested too deeply"));
        }
        let one = if self.skips("not") || self.skips("!") {
            Where::Not(Box::new(self.one()?))
        } else if self.skips("(") {
            let inner = self.any()?;
            if !self.skips(")") {
                let token = self.next();
                return Err(self.unexpected(token.as_ref(), "\")\""));
            }
            inner
        } else {
            self.comparison()?
        };
        self.depth -= 1;
        Ok(one)
    }

    fn comparison(&mut self) -> Result<Where, N::Error> {
        let name = match self.next() {
            Some(Token::Word(name)) => name,
            other => return Err(self.unexpected(other.as_ref(), "a column")),
        };
        let (name, key) = match name.split_once(':') {
            Some((name, "")) => match self.next() {
                // A key in quotes.
                Some(Token::Quoted(key)) => (name.to_owned(), Some(key)),
                other => return Err(self.unexpected(other.as_ref(), "a key")),
            },
            Some((name, key)) => (name.to_owned(), Some(key.to_owned())),
            None => (name, None),
        };
        let column = match name.eq_ignore_ascii_case("_uuid") {
            true => ColumnId::UUID,
            false => self.names.column(self.table, &name)?,
        };
        let schema = self.names.schema().table(self.table);
        let column_type = schema.column(column).column_type.clone();
        let (base, key) = match (&column_type.value, key) {
            (Some(value_type), Some(key)) => {
                let key = self.atom(&Token::Quoted(key), &column_type.key)?;
                (value_type, Some(key))
            }
            (None, Some(_)) => {
                return Err(self.form(&format!("cannot specify key for non-map column {name}")));
            }
            (_, None) => (&column_type.key, None),
        };
        let (test, is_negated) = self.test(base)?;
        let comparison = Where::Compare(Comparison {
            column,
            key,
            test,
            is_set: is_set(&column_type),
        });
        Ok(match is_negated {
            true => Where::Not(Box::new(comparison)),
            false => comparison,
        })
    }

    /// The test after a column, and whether it must not hold.
    fn test(&mut self, base: &BaseType) -> Result<(Test, bool), N::Error> {
        let at = self.at;
        let is_negated = self.skips("not");
        if self.skips("in") {
            return Ok((Test::In(self.list(base)?), is_negated));
        }
        self.at = at;
        let sign = match self.tokens.get(self.at) {
            Some(Token::Sign(sign)) if !matches!(*sign, ")" | "(" | "," | "!") => *sign,
            _ => return Ok((Test::IsTrue, false)),
        };
        self.at += 1;
        if matches!(sign, "==" | "=" | "!=") && (self.skips("[]") || self.skips("{}")) {
            return Ok((Test::IsEmpty, sign == "!="));
        }
        let Some(token @ (Token::Word(_) | Token::Quoted(_))) = self.next() else {
            let token = self.tokens.get(self.at - 1);
            return Err(self.unexpected(token, "a value"));
        };
        let order = |orders: &[Ordering], atom| Test::Ordered(atom, orders.to_vec());
        Ok(match sign {
            "~" | "!~" => {
                let (Token::Word(text) | Token::Quoted(text)) = &token else {
                    return Err(self.unexpected(Some(&token), "a pattern"));
                };
                let pattern =
                    Pattern::new(text).map_err(|error| self.names.fault(Fault::Value(error)))?;
                (Test::Matches(pattern), sign == "!~")
            }
            "<" => (order(&[Ordering::Less], self.atom(&token, base)?), false),
            ">" => (order(&[Ordering::Greater], self.atom(&token, base)?), false),
            "<=" => (
                order(&[Ordering::Less, Ordering::Equal], self.atom(&token, base)?),
                false,
            ),
            ">=" => (
                order(
                    &[Ordering::Greater, Ordering::Equal],
                    self.atom(&token, base)?,
                ),
                false,
            ),
            "==" | "=" | "!=" => (Test::In(vec![self.atom(&token, base)?]), sign == "!="),
            other => return Err(self.unexpected(Some(&Token::Sign(other)), "an operator")),
        })
    }

    /// The values of `in`, in parentheses.
    fn list(&mut self, base: &BaseType) -> Result<Vec<Atom>, N::Error> {
        if !self.skips("(") {
            let token = self.next();
            return Err(self.unexpected(token.as_ref(), "\"(\""));
        }
        let mut atoms = Vec::new();
        while let Some(token) = self.next() {
            match token {
                Token::Sign(")") => return Ok(atoms),
                Token::Sign(",") => {}
                value => atoms.push(self.atom(&value, base)?),
            }
        }
        Err(self.unexpected(None, "\")\""))
    }

    /// A value; a UUID of a row also by the row's name.
    fn atom(&mut self, token: &Token, base: &BaseType) -> Result<Atom, N::Error> {
        let word = match token {
            Token::Word(word) | Token::Quoted(word) => word,
            Token::Sign(_) => return Err(self.unexpected(Some(token), "a value")),
        };
        if let Some(reference) = &base.reference {
            return Ok(Atom::Uuid(self.names.row(reference.table, word)?));
        }
        // A comparison with a value beyond the bounds is not wrong: `n < 1000` holds for every row.
        // A value that is not among the allowed ones is a slip.
        let plain = BaseType::plain(base.atom);
        let atom = match base.atom {
            AtomType::String => Atom::String(word.as_str().into()),
            _ => text::read_atom(word, &plain, &mut |_| None)
                .map_err(|error| self.names.fault(Fault::Value(error.to_string())))?,
        };
        match &base.enumeration {
            Some(allowed) if !allowed.contains(atom.as_ref()) => {
                Err(self.form(&format!("\"{word}\" is not one of {}", listed(allowed))))
            }
            _ => Ok(atom),
        }
    }

    fn form(&self, text: &str) -> N::Error {
        self.names.fault(Fault::Form(text.to_owned()))
    }

    fn unexpected(&self, token: Option<&Token>, wanted: &str) -> N::Error {
        let found = match token {
            None => "the end".to_owned(),
            Some(Token::Word(text) | Token::Quoted(text)) => format!("\"{text}\""),
            Some(Token::Sign(sign)) => format!("\"{sign}\""),
        };
        self.form(&format!("{wanted} is expected, not {found}"))
    }
}

/// The atoms of a set, separated by commas.
fn listed(atoms: &Datum) -> String {
    let shown = atoms.keys().map(|atom| {
        let mut shown = String::new();
        text::write_atom_bare(&mut shown, atom);
        shown
    });
    shown.collect::<Vec<_>>().join(", ")
}

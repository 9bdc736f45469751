//! Interprets annotation files as Open vSwitch and OVN write them: a small part of Python.
//!
//! A file may contain comments, assignments to members of the schema `s` and to names, functions
//! that return nothing, and calls of these functions. Values are strings, integers, booleans,
//! `None`, lists and objects. A name that is assigned a member of the schema refers to that member,
//! as in Python. Any other code is an error that gives its line. No code runs other than these
//! assignments and calls.

use std::collections::{HashMap, HashSet};

use bstr::BString;
use corvid_json::Value;

use super::token::{Kind, Token, tokens};

/// The deepest nesting of calls.
const DEPTH_MAX: usize = 32;

/// Applies annotations to a schema. The error is the number of the line that was not understood.
pub(super) fn apply(schema: &mut Value, text: &str) -> Result<(), usize> {
    let tokens = tokens(text)?;
    let mut script = Script {
        schema,
        functions: HashMap::new(),
        globals: HashMap::from([("s".to_owned(), Bound::Member(Vec::new()))]),
        shared: HashSet::new(),
        depth: 0,
    };
    let last = tokens.last().map_or(1, |token| token.line);
    let mut cursor = Cursor {
        tokens: &tokens,
        at: 0,
        last,
    };
    while cursor.at < tokens.len() {
        script.statement(&mut cursor, &mut None)?;
    }
    Ok(())
}

/// The meaning of a name or an expression.
#[derive(Clone)]
enum Bound {
    /// The member of the schema at this path.
    Member(Vec<Step>),
    /// A value that is not part of the schema.
    Own(Value),
}

impl Bound {
    /// Returns whether this is a list or an object outside the schema.
    fn is_container(&self) -> bool {
        matches!(self, Bound::Own(Value::Array(_) | Value::Object(_)))
    }
}

#[derive(Clone)]
enum Step {
    Name(BString),
    Index(usize),
}

type Names = HashMap<String, Bound>;

struct Function<'t> {
    parameters: Vec<String>,
    body: &'t [Token],
}

struct Script<'s, 't> {
    schema: &'s mut Value,
    functions: HashMap<String, Function<'t>>,
    globals: Names,
    /// The names of lists and objects that another name or container also holds. In Python both
    /// hold the same object, here each holds a copy. A change to such a value would be lost in the
    /// other copy, so it is an error.
    shared: HashSet<String>,
    depth: usize,
}

/// A position in a sequence of tokens.
struct Cursor<'t> {
    tokens: &'t [Token],
    at: usize,
    last: usize,
}

impl<'t> Cursor<'t> {
    fn line(&self) -> usize {
        self.tokens
            .get(self.at)
            .map_or(self.last, |token| token.line)
    }

    fn peek(&self) -> Option<&'t Kind> {
        self.tokens.get(self.at).map(|token| &token.kind)
    }

    fn next(&mut self) -> Result<&'t Kind, usize> {
        let kind = self.peek().ok_or(self.line())?;
        self.at += 1;
        Ok(kind)
    }

    fn is(&self, sign: char) -> bool {
        self.peek() == Some(&Kind::Sign(sign))
    }

    /// Consumes the next token if it is the sign, and returns whether it was.
    fn takes(&mut self, sign: char) -> bool {
        let is_there = self.is(sign);
        self.at += usize::from(is_there);
        is_there
    }

    fn expect(&mut self, kind: &Kind) -> Result<(), usize> {
        let line = self.line();
        if self.next()? == kind {
            return Ok(());
        }
        Err(line)
    }

    fn name(&mut self) -> Result<String, usize> {
        let line = self.line();
        match self.next()? {
            Kind::Name(name) => Ok(name.clone()),
            _ => Err(line),
        }
    }
}

impl<'t> Script<'_, 't> {
    /// Runs one statement. Inside a function, `locals` holds the function's names.
    fn statement(
        &mut self,
        cursor: &mut Cursor<'t>,
        locals: &mut Option<Names>,
    ) -> Result<(), usize> {
        let line = cursor.line();
        match cursor.peek() {
            Some(Kind::Name(word)) if word == "def" => return self.definition(cursor),
            Some(Kind::Name(word)) if word == "pass" => {
                cursor.at += 1;
                return cursor.expect(&Kind::Newline);
            }
            Some(Kind::Name(word)) if word == "return" && locals.is_some() => {
                cursor.at += 1;
                cursor.expect(&Kind::Newline)?;
                cursor.at = cursor.tokens.len();
                return Ok(());
            }
            // A file may be indented as a whole.
            Some(Kind::Indent | Kind::Dedent) => {
                cursor.at += 1;
                return Ok(());
            }
            // A string alone is a documentation comment.
            Some(Kind::Text(_)) => {
                cursor.at += 1;
                return cursor.expect(&Kind::Newline);
            }
            _ => {}
        }
        let name = cursor.name()?;
        if cursor.is('(') {
            self.call(&name, cursor, locals)?;
            return cursor.expect(&Kind::Newline);
        }
        let mut steps = Vec::new();
        while cursor.takes('[') {
            steps.push(self.step(cursor, locals)?);
            cursor.expect(&Kind::Sign(']'))?;
        }
        cursor.expect(&Kind::Sign('='))?;
        let value = self.expression(cursor, locals)?;
        cursor.expect(&Kind::Newline)?;
        if steps.is_empty() {
            self.shared.remove(&name);
            let names = locals.as_mut().unwrap_or(&mut self.globals);
            names.insert(name, value);
            return Ok(());
        }
        let value = self.own(value, line)?;
        let is_local = locals
            .as_ref()
            .is_some_and(|names| names.contains_key(&name));
        let names = match locals {
            Some(names) if is_local => names,
            _ => &mut self.globals,
        };
        let place = match names.get_mut(&name).ok_or(line)? {
            Bound::Own(_) if self.shared.contains(&name) => return Err(line),
            Bound::Own(own) => own,
            Bound::Member(path) => {
                let mut whole = path.clone();
                whole.append(&mut steps);
                steps = whole;
                &mut *self.schema
            }
        };
        set(place, &steps, value).ok_or(line)
    }

    fn definition(&mut self, cursor: &mut Cursor<'t>) -> Result<(), usize> {
        cursor.at += 1;
        let name = cursor.name()?;
        cursor.expect(&Kind::Sign('('))?;
        let mut parameters = Vec::new();
        while !cursor.takes(')') {
            parameters.push(cursor.name()?);
            if !cursor.is(')') {
                cursor.expect(&Kind::Sign(','))?;
            }
        }
        cursor.expect(&Kind::Sign(':'))?;
        cursor.expect(&Kind::Newline)?;
        cursor.expect(&Kind::Indent)?;
        let begin = cursor.at;
        let mut depth = 1;
        while depth > 0 {
            match cursor.next()? {
                Kind::Indent => depth += 1,
                Kind::Dedent => depth -= 1,
                _ => {}
            }
        }
        let body = &cursor.tokens[begin..cursor.at - 1];
        self.functions.insert(name, Function { parameters, body });
        Ok(())
    }

    fn call(
        &mut self,
        name: &str,
        cursor: &mut Cursor<'t>,
        locals: &Option<Names>,
    ) -> Result<(), usize> {
        let line = cursor.line();
        cursor.expect(&Kind::Sign('('))?;
        let mut arguments = Vec::new();
        let mut are_named = Vec::new();
        while !cursor.takes(')') {
            are_named.push(matches!(cursor.peek(), Some(Kind::Name(_))));
            arguments.push(self.expression(cursor, locals)?);
            if !cursor.is(')') {
                cursor.expect(&Kind::Sign(','))?;
            }
        }
        let function = self.functions.get(name).ok_or(line)?;
        if function.parameters.len() != arguments.len() || self.depth == DEPTH_MAX {
            return Err(line);
        }
        for ((parameter, argument), is_named) in
            function.parameters.iter().zip(&arguments).zip(are_named)
        {
            // A list or object that was written in the call has no other name, so the function may
            // change it.
            if is_named && argument.is_container() {
                self.shared.insert(parameter.clone());
            } else {
                self.shared.remove(parameter);
            }
        }
        let names = function.parameters.iter().cloned().zip(arguments);
        let mut names = Some(names.collect());
        let mut body = Cursor {
            tokens: function.body,
            at: 0,
            last: line,
        };
        self.depth += 1;
        while body.at < body.tokens.len() {
            self.statement(&mut body, &mut names)?;
        }
        self.depth -= 1;
        Ok(())
    }

    fn step(&mut self, cursor: &mut Cursor<'t>, locals: &Option<Names>) -> Result<Step, usize> {
        let line = cursor.line();
        let value = self.expression(cursor, locals)?;
        match self.own(value, line)? {
            Value::String(name) => Ok(Step::Name(name)),
            Value::Integer(index) => usize::try_from(index).map(Step::Index).map_err(|_| line),
            _ => Err(line),
        }
    }

    /// Evaluates operands joined by `+`, which must be strings or lists.
    fn expression(
        &mut self,
        cursor: &mut Cursor<'t>,
        locals: &Option<Names>,
    ) -> Result<Bound, usize> {
        let line = cursor.line();
        let mut bound = self.operand(cursor, locals)?;
        while cursor.takes('+') {
            let right = self.operand(cursor, locals)?;
            let sum = match (self.own(bound, line)?, self.own(right, line)?) {
                (Value::String(mut left), Value::String(right)) => {
                    left.extend_from_slice(&right);
                    Value::String(left)
                }
                (Value::Array(mut left), Value::Array(right)) => {
                    left.extend(right);
                    Value::Array(left)
                }
                _ => return Err(line),
            };
            bound = Bound::Own(sum);
        }
        Ok(bound)
    }

    fn operand(&mut self, cursor: &mut Cursor<'t>, locals: &Option<Names>) -> Result<Bound, usize> {
        let line = cursor.line();
        let value = match cursor.next()? {
            Kind::Text(text) => {
                let mut whole = text.clone();
                while let Some(Kind::Text(more)) = cursor.peek() {
                    whole += more;
                    cursor.at += 1;
                }
                Value::string(whole)
            }
            Kind::Integer(number) => Value::Integer(*number),
            Kind::Sign('-') => match cursor.next()? {
                Kind::Integer(number) => Value::Integer(-number),
                _ => return Err(line),
            },
            Kind::Sign('(') => {
                let inner = self.expression(cursor, locals)?;
                cursor.expect(&Kind::Sign(')'))?;
                return Ok(inner);
            }
            Kind::Sign('[') => {
                let mut elements = Vec::new();
                while !cursor.takes(']') {
                    let element = self.expression(cursor, locals)?;
                    elements.push(self.own(element, line)?);
                    if !cursor.is(']') {
                        cursor.expect(&Kind::Sign(','))?;
                    }
                }
                Value::Array(elements)
            }
            Kind::Sign('{') => {
                let mut members = corvid_json::Object::new();
                while !cursor.takes('}') {
                    let name = self.expression(cursor, locals)?;
                    let Value::String(name) = self.own(name, line)? else {
                        return Err(line);
                    };
                    cursor.expect(&Kind::Sign(':'))?;
                    let member = self.expression(cursor, locals)?;
                    members.insert(name, self.own(member, line)?);
                    if !cursor.is('}') {
                        cursor.expect(&Kind::Sign(','))?;
                    }
                }
                Value::Object(members)
            }
            Kind::Name(word) => match word.as_str() {
                "True" => Value::Bool(true),
                "False" => Value::Bool(false),
                "None" => Value::Null,
                name => {
                    let local = locals.as_ref().and_then(|names| names.get(name));
                    let mut bound = local.or(self.globals.get(name)).ok_or(line)?.clone();
                    while cursor.takes('[') {
                        let step = self.step(cursor, locals)?;
                        cursor.expect(&Kind::Sign(']'))?;
                        bound = match bound {
                            Bound::Member(mut path) => {
                                path.push(step);
                                Bound::Member(path)
                            }
                            Bound::Own(value) => Bound::Own(get(&value, &[step]).ok_or(line)?),
                        };
                    }
                    if bound.is_container() {
                        self.shared.insert(name.to_owned());
                    }
                    return Ok(bound);
                }
            },
            _ => return Err(line),
        };
        Ok(Bound::Own(value))
    }

    /// Returns a copy of the value that an expression has.
    fn own(&self, bound: Bound, line: usize) -> Result<Value, usize> {
        match bound {
            Bound::Own(value) => Ok(value),
            Bound::Member(path) => get(self.schema, &path).ok_or(line),
        }
    }
}

fn get(value: &Value, path: &[Step]) -> Option<Value> {
    let mut value = value;
    for step in path {
        value = match (value, step) {
            (Value::Object(members), Step::Name(name)) => members.get(name)?,
            (Value::Array(elements), Step::Index(index)) => elements.get(*index)?,
            _ => return None,
        };
    }
    Some(value.clone())
}

/// Sets a member. The object or list that contains it must exist.
fn set(value: &mut Value, path: &[Step], new: Value) -> Option<()> {
    let (last, path) = path.split_last()?;
    let mut value = value;
    for step in path {
        value = match (value, step) {
            (Value::Object(members), Step::Name(name)) => members.get_mut(name)?,
            (Value::Array(elements), Step::Index(index)) => elements.get_mut(*index)?,
            _ => return None,
        };
    }
    match (value, last) {
        (Value::Object(members), Step::Name(name)) => {
            members.insert(name.clone(), new);
        }
        (Value::Array(elements), Step::Index(index)) => *elements.get_mut(*index)? = new,
        _ => return None,
    }
    Some(())
}

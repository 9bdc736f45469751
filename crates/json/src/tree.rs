//! Builds a tree from the pull reader, with an explicit stack, so that a thousand levels cost no
//! thread stack.
//!
//! Only [`crate::Reader::value`] calls this file.

use bstr::BString;

use crate::{Error, Kind, Object, Reader, Value};

/// A container that is still open.
enum Open {
    Array(Vec<Value>),
    /// The members so far, and the name of the next value.
    Object(Object, BString),
}

pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Value, Error> {
    let mut stack: Vec<Open> = Vec::new();
    loop {
        let mut value = match reader.peek()? {
            Kind::Null => reader.null().map(|()| Value::Null)?,
            Kind::Bool => Value::Bool(reader.boolean()?),
            Kind::Number => Value::from(reader.number()?),
            Kind::String => Value::String(BString::from(reader.string()?.into_owned())),
            Kind::Array => {
                reader.begin_array()?;
                if reader.next_element()? {
                    stack.push(Open::Array(Vec::new()));
                    continue;
                }
                Value::Array(Vec::new())
            }
            Kind::Object => {
                reader.begin_object()?;
                if let Some(name) = reader.next_member()? {
                    stack.push(Open::Object(
                        Object::new(),
                        BString::from(name.into_owned()),
                    ));
                    continue;
                }
                Value::Object(Object::new())
            }
        };
        // Put the finished value into its container, and close every container that ends here.
        loop {
            match stack.pop() {
                None => return Ok(value),
                Some(Open::Array(mut elements)) => {
                    elements.push(value);
                    if reader.next_element()? {
                        stack.push(Open::Array(elements));
                        break;
                    }
                    value = Value::Array(elements);
                }
                Some(Open::Object(mut members, name)) => {
                    members.insert(name, value);
                    if let Some(name) = reader.next_member()? {
                        stack.push(Open::Object(members, BString::from(name.into_owned())));
                        break;
                    }
                    value = Value::Object(members);
                }
            }
        }
    }
}

//! JSON that Corvid wrote from typed values, for programs that print it again.

use corvid_json::reader::Kind;
use corvid_json::{Error, Object, Reader, Value};

/// Parses a text. A number with an exponent is a real, even if it is whole: reals from 1e15 are
/// written so. By the number rule it would be an integer, which is printed in another form.
pub(crate) fn parse(text: &[u8]) -> Result<Value, Error> {
    let mut reader = Reader::new(text);
    let parsed = value(&mut reader)?;
    reader.end()?;
    Ok(parsed)
}

fn value(reader: &mut Reader<'_>) -> Result<Value, Error> {
    match reader.peek()? {
        Kind::Array => {
            let mut elements = Vec::new();
            reader.begin_array()?;
            while reader.next_element()? {
                elements.push(value(reader)?);
            }
            Ok(Value::Array(elements))
        }
        Kind::Object => {
            let mut members = Object::new();
            reader.begin_object()?;
            while let Some(name) = reader.next_member()? {
                members.insert(name.into_owned().into(), value(reader)?);
            }
            Ok(Value::Object(members))
        }
        Kind::Number => number(reader),
        _ => reader.value(),
    }
}

fn number(reader: &mut Reader<'_>) -> Result<Value, Error> {
    let text = reader.skip()?;
    let real = std::str::from_utf8(text).ok().filter(|it| it.contains('e'));
    match real.and_then(|it| it.parse().ok()) {
        Some(real) => Ok(Value::Real(real)),
        None => Value::parse(text),
    }
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn reals_stay_reals() {
        let text = r#"[{"b":1e+15,"a":[-1e+18,5,0.5,1e-05,1e+300,"1e5",true,null]}]"#;
        let sorted = r#"[{"a":[-1e+18,5,0.5,1e-05,1e+300,"1e5",true,null],"b":1e+15}]"#;
        assert_eq!(parse(text.as_bytes()).unwrap().to_string(), sorted);
        assert!(parse(b"[1e+]").is_err() && parse(b"[1]]").is_err());
    }
}

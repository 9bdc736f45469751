//! The query of an address: names and values, decoded.

/// The names and values of a query or a form, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Params(Vec<(String, String)>);

impl Params {
    /// Decodes the query of an address, or a form.
    pub(crate) fn parse(text: &[u8]) -> Params {
        Params(form_urlencoded::parse(text).into_owned().collect())
    }

    /// The value of a name; empty if it is absent.
    pub(crate) fn get(&self, name: &str) -> &str {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value)
    }

    /// All values of a name that are not empty.
    pub(crate) fn all<'p>(&'p self, name: &'p str) -> impl Iterator<Item = &'p str> {
        let named = self.0.iter().filter(move |(known, _)| known == name);
        named
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty())
    }

    /// The first values of these names that are not empty, in the order of `names`.
    pub(crate) fn only(&self, names: &[&str]) -> Params {
        let values = names.iter().map(|name| (*name, self.get(name).trim()));
        let values = values.filter(|(_, value)| !value.is_empty());
        Params(
            values
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
        )
    }

    /// The same query with another value of a name; an empty one removes it.
    pub(crate) fn with(&self, name: &str, value: &str) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        for (known, kept) in &self.0 {
            if known != name && !kept.is_empty() {
                query.append_pair(known, kept);
            }
        }
        if !value.is_empty() {
            query.append_pair(name, value);
        }
        format!("?{}", query.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_decoded_and_changed() {
        let params = Params::parse(b"where=name+%7E+%22a%26b%22&sort=-name&page=2&columns=");
        assert_eq!(params.get("where"), "name ~ \"a&b\"");
        assert_eq!(params.get("nothing"), "");
        assert_eq!(
            params.with("page", "3"),
            "?where=name+%7E+%22a%26b%22&sort=-name&page=3"
        );
        assert_eq!(params.with("where", ""), "?sort=-name&page=2");
    }
}

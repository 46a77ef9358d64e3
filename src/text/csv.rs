//! Fields of a CSV line (RFC 4180): a field with a comma, a quote or a line end stands in quotes, and a quote
//! in it is doubled.

use std::borrow::Cow;

/// Appends `field` to a line. The bytes need not be UTF-8.
pub(crate) fn push_csv_field(out: &mut Vec<u8>, field: &[u8]) {
    if !field.iter().any(|b| matches!(b, b',' | b'"' | b'\n' | b'\r')) {
        return out.extend_from_slice(field);
    }
    out.push(b'"');
    for byte in field {
        if *byte == b'"' {
            out.push(b'"');
        }
        out.push(*byte);
    }
    out.push(b'"');
}

/// `field` as a line holds it, for lines that are put together with `write!`.
pub(crate) fn csv_field(field: &str) -> Cow<'_, str> {
    let mut quoted = Vec::new();
    push_csv_field(&mut quoted, field.as_bytes());
    match quoted == field.as_bytes() {
        true => Cow::Borrowed(field),
        false => Cow::Owned(String::from_utf8_lossy(&quoted).into_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fields of one record, as a reader of RFC 4180 takes them apart.
    fn decode(mut record: &str) -> Vec<String> {
        let mut fields = Vec::new();
        loop {
            let mut field = String::new();
            match record.strip_prefix('"') {
                None => {
                    let end = record.find(',').unwrap_or(record.len());
                    field.push_str(&record[..end]);
                    record = &record[end..];
                }
                Some(mut rest) => loop {
                    let end = rest.find('"').unwrap();
                    field.push_str(&rest[..end]);
                    rest = &rest[end + 1..];
                    record = rest;
                    match rest.strip_prefix('"') {
                        Some(after) => rest = after,
                        None => break,
                    }
                    field.push('"');
                },
            }
            fields.push(field);
            match record.strip_prefix(',') {
                Some(rest) => record = rest,
                None => return fields,
            }
        }
    }

    #[test]
    fn what_is_decoded_is_what_was_encoded() {
        let fields = ["", "plain", "a,b", "say \"x\"", "\"", "two\nlines", "\r\n", "Map<K,V>.get", "ü"];
        let record = fields.map(csv_field).join(",");
        assert_eq!(decode(&record), fields);
        let mut line = Vec::new();
        push_csv_field(&mut line, b"\xff,\"");
        assert_eq!(line, b"\"\xff,\"\"\"");
    }
}

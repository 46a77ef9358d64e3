//! The files of docs/schemas, made of the structs that `--json` prints. `UPDATE_GOLDEN=1 cargo test --lib
//! schemas` writes them anew.

use std::collections::BTreeMap;
use std::path::Path;
use std::{env, fs};

use schemars::generate::SchemaSettings;
use schemars::transform::transform_subschemas;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Value, json};

use super::{dataset, info, merge, report, version};
use crate::desk::{DeviceLine, ListedJson};
use crate::export::explain::ExplainedJson;
use crate::gate::JudgementJson;
use crate::measure::Comparison;
use crate::profile::{Overhead, ProfileLine};

/// How the schema of a document is made.
type MakeSchema = fn(SchemaGenerator) -> Schema;

/// The documents of the host's commands, by the names of their schemas.
const DOCUMENTS: &[(&str, MakeSchema)] = &[
    ("adb", SchemaGenerator::into_root_schema_for::<AdbDocument<'static>>),
    ("comparison", SchemaGenerator::into_root_schema_for::<ComparisonDocument<'static>>),
    ("convert", SchemaGenerator::into_root_schema_for::<merge::ConversionJson<'static>>),
    ("dataset", SchemaGenerator::into_root_schema_for::<dataset::DatasetList<'static>>),
    ("gate", SchemaGenerator::into_root_schema_for::<JudgementJson<'static>>),
    ("info", SchemaGenerator::into_root_schema_for::<info::InfoLine<'static>>),
    ("profile", SchemaGenerator::into_root_schema_for::<ProfileDocument<'static>>),
    ("version", SchemaGenerator::into_root_schema_for::<version::BuildFacts>),
    ("why", SchemaGenerator::into_root_schema_for::<ExplainedJson<'static>>),
];

/// The comparisons that commands print.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, clippy::large_enum_variant, reason = "the variants are read by the derive alone")]
enum ComparisonDocument<'a> {
    /// `report --against`.
    Report(report::ComparisonReport<'a>),
    /// `adb launch --compare`.
    Launches(Comparison),
}

/// The lines of `adb … --json`.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, clippy::large_enum_variant, reason = "the variants are read by the derive alone")]
enum AdbDocument<'a> {
    /// A command on a device.
    Command(DeviceLine<'a>),
    /// A device of `adb devices`.
    Device(ListedJson),
}

/// The lines of `profile --json`.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "the variants are read by the derive alone")]
enum ProfileDocument<'a> {
    Profile(ProfileLine<'a>),
    /// The comparison of a method trace with samples (--overhead).
    Overhead(Overhead<'a>),
}

const COMMENT: &str =
    "Generated from the structs that the program prints: UPDATE_GOLDEN=1 cargo test --lib schemas";
/// A value that fits is written into one line of this many characters.
const WIDTH: usize = 180;

fn documents() -> Vec<(&'static str, MakeSchema)> {
    [DOCUMENTS.to_vec(), tracebridge_device::internals::json_documents().to_vec()].concat()
}

fn schema(make: MakeSchema) -> Schema {
    make(SchemaSettings::draft2020_12().for_serialize().with_transform(plain).into_generator())
}

/// Adds to the objects of `adb` the fields that the binary on the device prints: references to its own
/// schemas.
fn add_fields_of_device(adb: &mut Schema) {
    let mut fields: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for (name, make) in tracebridge_device::internals::json_documents() {
        let schema = schema(make);
        for field in
            schema.get("properties").and_then(Value::as_object).into_iter().flatten().map(|(field, _)| field)
        {
            // A launch has the fields of a recording.
            if name != "launch" || !fields.contains_key(field) {
                let reference = json!({ "$ref": format!("{name}.json#/properties/{field}") });
                fields.entry(field.clone()).or_default().push(reference);
            }
        }
    }
    for definition in ["DeviceJson", "DeviceLine"] {
        let pointer = format!("/$defs/{definition}/properties");
        let properties = adb.pointer_mut(&pointer).and_then(Value::as_object_mut).unwrap();
        for (field, references) in &fields {
            properties.entry(field).or_insert_with(|| json!({ "anyOf": references }));
        }
    }
}

fn file_text(name: &str, make: MakeSchema) -> String {
    let mut schema = schema(make);
    if name == "adb" {
        add_fields_of_device(&mut schema);
    }
    schema.insert("$comment".to_owned(), COMMENT.into());
    let mut text = String::new();
    write(schema.as_value(), 0, &mut text);
    text.push('\n');
    text
}

/// Removes what JSON Schema leaves to other languages (`format` of numbers, `default`), and the links of
/// rustdoc.
fn plain(schema: &mut Schema) {
    schema.remove("default");
    schema.remove("format");
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = without_links(text);
    }
    transform_subschemas(&mut plain, schema);
}

/// The text of a doc comment in one line: of a link its name alone.
fn without_links(text: &str) -> String {
    let mut parts = text.split("`](");
    let first = parts.next().unwrap_or_default().to_owned();
    let text =
        parts.fold(first, |text, part| text + "`" + part.split_once(')').map_or(part, |(_, rest)| rest));
    let text = text.replace("[`", "`").replace("`]", "`");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Writes `value` into one line where it fits, else each of its members on a line of its own.
fn write(value: &Value, indent: usize, text: &mut String) {
    let line = value.to_string();
    let members: Vec<(Option<&str>, &Value)> = match value {
        Value::Object(members) => members.iter().map(|(name, value)| (Some(name.as_str()), value)).collect(),
        Value::Array(items) => items.iter().map(|item| (None, item)).collect(),
        _ => Vec::new(),
    };
    if members.is_empty() || indent + line.len() <= WIDTH {
        return text.push_str(&line);
    }
    text.push_str(&line[..1]);
    for (at, (name, member)) in members.into_iter().enumerate() {
        text.push_str(if at == 0 { "\n" } else { ",\n" });
        text.push_str(&" ".repeat(indent + 1));
        if let Some(name) = name {
            text.push_str(&format!("{}: ", Value::from(name)));
        }
        write(member, indent + 1, text);
    }
    text.push('\n');
    text.push_str(&" ".repeat(indent));
    text.push_str(&line[line.len() - 1..]);
}

#[test]
fn the_published_schemas_are_those_of_what_is_printed() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/schemas");
    let is_update = env::var_os("UPDATE_GOLDEN").is_some();
    for (name, make) in documents() {
        let path = dir.join(name).with_extension("json");
        let text = file_text(name, make);
        if is_update {
            fs::write(&path, &text).unwrap();
        }
        let published = fs::read_to_string(&path).unwrap_or_default();
        assert!(published == text, "{} is not up to date: {COMMENT}", path.display());
    }
}

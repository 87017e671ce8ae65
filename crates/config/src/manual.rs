//! The reference manual of the model, in Markdown.

use crate::Path;
use crate::schema::{self, Kind, Leaf, Schema, Type};
use std::fmt::Write;

/// Reference manual: every setting with its meaning, its values and its default.
pub fn manual() -> String {
    let mut out = String::from(
        "# Configuration reference\n\n\
         Generated from the model by `UPDATE=1 cargo test -p config --test manual`. Do not edit.\n\n\
         Settings are shown as you type them on the command line, for example `set user-planes up1 ports core0 mtu 9000`; \
         in a YAML file each word is one level. *NAME* is a name that you choose.\n",
    );
    for (name, part) in parts(schema::root()) {
        let _ = write!(out, "\n## {name}\n\n{}\n", part.doc);
        let mut rows = Vec::new();
        let path = Path::from_iter([name]);
        entries(&path, part, &mut out);
        collect(&path, part, &mut rows);
        table(&rows, &mut out);
    }
    out
}

fn parts(schema: &Schema) -> impl Iterator<Item = (&String, &Schema)> {
    let parts = match &schema.kind {
        Kind::Container(parts) => Some(parts),
        _ => None,
    };
    parts.into_iter().flatten()
}

/// Lists the names that the operator chooses.
fn entries(path: &Path, schema: &Schema, out: &mut String) {
    if let Kind::Entries { key, entry, .. } = &schema.kind {
        let _ = writeln!(out, "\n`{path}` *NAME*: {key}.");
        for (name, part) in parts(entry) {
            entries(&path.join("*").join(name), part, out);
        }
    }
    for (name, part) in parts(schema) {
        entries(&path.join(name), part, out);
    }
}

fn collect<'a>(path: &Path, schema: &'a Schema, rows: &mut Vec<(Path, &'a Schema, &'a Leaf)>) {
    match &schema.kind {
        Kind::Leaf(leaf) | Kind::LeafList(leaf) => rows.push((path.clone(), schema, leaf)),
        Kind::Entries { entry, .. } => collect(&path.join("*"), entry, rows),
        Kind::Container(parts) => parts
            .iter()
            .for_each(|(name, part)| collect(&path.join(name), part, rows)),
    }
}

fn table(rows: &[(Path, &Schema, &Leaf)], out: &mut String) {
    out.push_str("\n| setting | value | default | meaning |\n|---|---|---|---|\n");
    for (path, schema, leaf) in rows {
        let path = path.to_string().replace('*', "*NAME*");
        let list = if matches!(schema.kind, Kind::LeafList(_)) {
            "a list, each "
        } else {
            ""
        };
        let default = match (&leaf.default, schema.required) {
            (Some(default), _) => format!("`{default}`"),
            (None, true) => "required".into(),
            (None, false) => String::new(),
        };
        let mut doc = schema.doc.replace('\n', " ");
        if let Type::Word(words) = &leaf.leaf_type {
            for (word, meaning) in words {
                let _ = write!(doc, "<br>`{word}`: {meaning}");
            }
        }
        if let Some(example) = &leaf.example {
            let _ = write!(doc, "<br>Example: `{example}`.");
        }
        let _ = writeln!(
            out,
            "| {path} | {list}{} | {default} | {doc} |",
            leaf.expected()
        );
    }
}

//! [`config`]: any text in place of a configuration file, and any line in place of an edit.
//!
//! An input is text. What is behind a line of `---` is edits, a line each, of what the document before it has.
use config::{Checked, Edit, check, edit, write};

/// Documents and edits to begin with.
pub fn seeds() -> Vec<Vec<u8>> {
    let example = include_str!("../../deploy/examples/sluice.yaml");
    let edits = "---\nset user-planes up1 ports core0 mtu 9000\ndelete users\nset users \"a b\" password \"x\\\"y\"\n";
    let all = edit::all(&check::read(example).expect("the example is good").tree);
    let lines: Vec<String> = all.iter().map(ToString::to_string).collect();
    vec![
        example.as_bytes().to_vec(),
        format!("{example}{edits}").into_bytes(),
        format!("{{}}\n---\n{}", lines.join("\n")).into_bytes(),
        b"limits: {sessions: 5}\nipv4-pools:\n  a: {prefix: 10.0.0.0/8, net-length: 20}\n".to_vec(),
    ]
}

/// Reads a document and edits it.
///
/// # Panics
/// If what was read is another when it was written, or a difference does not lead from one tree to the other.
pub fn run(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let (document, edits) = text.split_once("\n---\n").unwrap_or((&text, ""));
    let before = check::read(document).unwrap_or_default();
    written(&before);
    let mut tree = before.tree.clone();
    for line in edits.lines() {
        if let Ok(edit) = Edit::parse(line) {
            let _ = edit.apply(&mut tree);
        }
    }
    let mut again = before.tree.clone();
    for edit in edit::difference(&before.tree, &tree) {
        edit.apply(&mut again).expect("a difference applies");
    }
    assert_eq!(again, tree, "a difference leads from one to the other");
    if let Ok(after) = check::check(&tree) {
        written(&after);
    }
}

/// What is written is what was read.
fn written(checked: &Checked) {
    let text = write(&checked.tree, true);
    match check::read(&text) {
        Ok(read) => assert_eq!(&read, checked, "{text}"),
        Err(faults) => panic!("{text}\n{faults:?}"),
    }
}

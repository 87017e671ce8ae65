//! The YANG modules are what the models say, and a YANG tool takes them: `UPDATE=1` writes them anew.

use gnmi::model::models;
use gnmi::yang;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the modules lie. OpenConfig's are not ours to write.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/yang")
}

#[test]
fn the_modules_are_what_the_models_say() {
    for model in models()
        .iter()
        .filter(|model| model.name.starts_with("sluice-"))
    {
        let text = yang::module(model);
        let file = folder().join(format!("{}.yang", model.name));
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&file, &text).unwrap();
        }
        let written = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(
            written == text,
            "{} is not what the model says: run `UPDATE=1 cargo test -p gnmi --test yang`",
            file.display()
        );
    }
}

#[test]
fn yanglint_takes_the_modules() {
    for name in ["sluice-configuration", "sluice-state"] {
        let file = folder().join(format!("{name}.yang"));
        // scripts/packages installs it for the tests
        let done = Command::new("yanglint").arg(&file).output();
        let done = done.expect("yanglint, of Debian's libyang2-tools");
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success() && said.is_empty(), "{name}: {said}");
    }
}

//! The reference manual and the JSON Schema are what the model says: `UPDATE=1` writes them anew.

use std::path::Path;

fn agrees(file: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs/reference")
        .join(file);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == text,
        "docs/reference/{file} is not what the model says: run `UPDATE=1 cargo test -p config --test manual`"
    );
}

#[test]
fn the_manual_is_what_the_model_says() {
    agrees("configuration.md", &config::manual::manual());
}

#[test]
fn the_schema_is_what_the_model_says() {
    let json = serde_json::to_string_pretty(&config::schema::json_schema()).unwrap();
    agrees("configuration.schema.json", &(json + "\n"));
}

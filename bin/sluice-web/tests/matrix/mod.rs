//! Everything that the gateway offers is reached by every interface: `docs/reference/interfaces.md` says how, and is written anew with
//! `UPDATE=1`. That the command line offers it is tested beside its code.

use super::*;
use ::gnmi::model::{Kind, model, node_name};
use ::gnmi::path::{node_of, of_words};
use northbound::catalogue::{ACTIONS, Action, TABLES};

/// Actions that have a path of their own by HTTP.
const OWN_PATHS: [(&str, &str); 7] = [
    ("top", "GET top"),
    ("trace", "GET trace"),
    ("watch events", "GET events/stream"),
    ("export records", "GET records"),
    ("commit", "POST configuration/commit"),
    ("commit check", "POST configuration/check"),
    ("commit confirm", "POST configuration/confirm"),
];
/// Actions that gNMI has a call for.
const BY_GNMI: [(&str, &str); 3] = [
    ("show configuration", "Get `/configuration`"),
    ("commit", "Set"),
    ("commit confirm", "Set with the extension *commit*"),
];
/// An action that only the command line has: by HTTP all edits are one request, and the web manager keeps them in the page.
const COMMAND_LINE_ONLY: &str = "configure";
/// Where the web manager has each action: its page, and what of the page's source shows that it asks for it.
const PAGES: [(&str, &str, &str); 22] = [
    ("show session", "a session", "'session', {"),
    ("show subscriber", "the search", "'subscriber', {"),
    ("show configuration", "*Configuration*", "'configuration'"),
    ("explain", "a session", "'explain', {"),
    ("who", "*Who had an address*", "'who', {"),
    ("top", "the overview", "url('top'"),
    ("trace", "a session", "url('trace'"),
    ("watch session", "a session", "order('watch-session'"),
    ("watch events", "*Events and alarms*", "url('events/stream'"),
    (
        "export records",
        "*Events and alarms*, *Backup*",
        "url('records'",
    ),
    ("check", "*Network*, *Resource audit*", "'actions/check'"),
    ("clear session", "a session", "order('clear-session'"),
    (
        "clear sessions",
        "*Subscribers*",
        "'actions/clear-sessions'",
    ),
    (
        "clear back-off",
        "*Network*, *Protection*",
        "'actions/clear-back-off'",
    ),
    (
        "acknowledge alarm",
        "*Events and alarms*",
        "'actions/acknowledge-alarm'",
    ),
    (
        "test aaa",
        "*Network*, *RADIUS servers*",
        "'actions/test-aaa'",
    ),
    (
        "backup history",
        "*Events and alarms*, *Backup*",
        "'actions/backup-history'",
    ),
    (
        "drain user-plane",
        "*Network*, *User planes*",
        "'actions/drain-user-plane'",
    ),
    (
        "move aggregate",
        "*Network*, *Queues*",
        "'actions/move-aggregate'",
    ),
    ("commit check", "*Configuration*", "'configuration/check'"),
    ("commit", "*Configuration*", "'configuration/commit'"),
    (
        "commit confirm",
        "a banner on every page",
        "'configuration/confirm'",
    ),
];

fn of<'a>(pairs: &[(&str, &'a str)], name: &str) -> Option<&'a str> {
    let pair = pairs.iter().find(|(of, _)| *of == name);
    pair.map(|(_, value)| *value)
}

/// Method and path of an action by HTTP.
fn rest(action: &Action, described: &Value) -> (&'static str, String) {
    let name = action.name.replace(' ', "-");
    let asks = action.name.trim_start_matches("show ");
    match of(&OWN_PATHS, action.name).map(|path| path.split_once(' ').unwrap()) {
        Some((method, path)) => (method, path.into()),
        None if described.get(format!("/api/v1/{asks}")).is_some() => ("GET", asks.into()),
        None => ("POST", format!("actions/{name}")),
    }
}

/// The sources of the pages.
fn sources(folder: &Path) -> String {
    let mut text = String::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        text += &match path.is_dir() {
            true => sources(&path),
            false => std::fs::read_to_string(&path).unwrap(),
        };
    }
    text
}

#[test]
fn every_table_and_action_is_reached_by_every_interface() {
    let web = Web::start();
    let token = web.token("viewer", "view", &[]);
    let described = web.rows(&token, "/api/v1/openapi.json")["paths"].clone();
    let has = |method: &str, path: &str| {
        let operations = &described[format!("/api/v1/{path}")];
        let operation = &operations[method.to_lowercase()];
        assert!(operation.is_object(), "no {method} {path} by HTTP");
    };
    let Kind::Container(state) = &model("state").unwrap().node.kind else {
        panic!("the state has no tables");
    };
    let mut tables = String::new();
    for table in TABLES {
        let (path, node) = (table.name.replace(' ', "/"), node_name(table));
        has("GET", &path);
        assert!(state.iter().any(|(name, _)| *name == node), "{node}");
        tables += &format!(
            "| {} | `sluice show {}` | `GET {path}` | `/state/{node}` | `#/tables/{path}` |\n",
            table.about, table.name
        );
    }
    let pages = sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/src"));
    let mut actions = String::new();
    for action in ACTIONS.iter().filter(|a| a.name != COMMAND_LINE_ONLY) {
        let (method, path) = rest(action, &described);
        has(method, &path);
        let page = PAGES.iter().find(|(name, ..)| *name == action.name);
        let (_, page, source) = page.unwrap_or_else(|| panic!("{} has no page", action.name));
        assert!(pages.contains(source), "{}: no page asks so", action.name);
        let gnmi = of(&BY_GNMI, action.name).unwrap_or_default();
        let command = match action.name.starts_with("commit") {
            true => format!("`{}` in `sluice configure`", action.name),
            false => format!("`sluice {}`", action.name),
        };
        actions += &format!(
            "| {} | {command} | `{method} {path}` | {gnmi} | {page} |\n",
            action.about
        );
    }
    is_written(&tables, &actions);
}

fn is_written(tables: &str, actions: &str) {
    let text = format!(
        "# What is reached how\n\n\
         This page is generated. Paths of HTTP begin with `/api/v1/` ([rest.md](../how-to/rest.md)), those of the web manager with its \
         address\n([web.md](../how-to/web.md)). gNMI: [gnmi.md](../how-to/gnmi.md).\n\n\
         **Every setting** of [configuration.md](configuration.md) is changed by `set` and `delete` lines, on the command line \
         (`sluice configure`), by HTTP\n(`configuration/commit`) and on the page *Configuration*, and by a Set of its path under \
         `/configuration`.\n\n\
         **Every alarm and event** is a row of the tables `alarms` and `events`, goes to whoever follows them, and to the destinations \
         of [events.md](../how-to/events.md).\n\n\
         ## Tables\n\n\
         | Table | Command line | HTTP | gNMI | Web manager |\n|---|---|---|---|---|\n{tables}\n\
         ## Actions and questions\n\n\
         | Action | Command line | HTTP | gNMI | Web manager: on the page |\n|---|---|---|---|---|\n{actions}\n\
         `sluice configure` edits a candidate in a shell. The other interfaces send all edits at once.\n"
    );
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/interfaces.md");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&file, &text).unwrap();
    }
    let written = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        written == text,
        "docs/reference/interfaces.md is not what is offered: run `UPDATE=1 cargo test -p sluice-web --test web matrix`"
    );
}

#[test]
fn every_setting_has_a_path_by_gnmi() {
    let leaves = config::schema::root().leaves();
    assert!(leaves.len() > 100, "{} settings", leaves.len());
    for (place, _) in leaves {
        let named = place.steps().iter().map(|step| step.replace('*', "x"));
        let path = of_words(&named.collect());
        let kind = node_of(&path).map(|node| &node.kind);
        let is_value = matches!(kind, Some(Kind::Leaf(_) | Kind::LeafList(_)));
        let of_values = matches!(kind, Some(Kind::List { of_values, .. }) if *of_values);
        assert!(is_value || of_values, "{place}: {path} is no value");
    }
}

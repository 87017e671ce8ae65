//! Data that a path leads to, from the control plane; and Get.

use super::who::Known;
use super::{PATHS, check_models, now, refuse_extensions};
use crate::api::{Site, role};
use crate::gateway::value;
use crate::query::{Arguments, MOST_LIMIT, Query};
use crate::role::Role;
use gnmi::model::{self, Model};
use gnmi::openconfig::{self, OpenConfig, Origin};
use gnmi::path::{Path, Step};
use gnmi::proto::get_request::DataType;
use gnmi::proto::{self, GetRequest, GetResponse, Notification, Update};
use gnmi::select::{Found, select};
use gnmi::shape;
use gnmi::value::Encoding;
use northbound::catalogue::{SESSIONS, TABLES, Table};
use northbound::{GetConfigurationRequest, GetSessionRequest};
use prost::Message;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use tonic::Status;

/// The largest configuration that is served, in octets: clients take 4 MiB in a message.
const LARGEST_TREE: usize = 3 << 20;
/// Maximum size of an answer, in octets.
const LARGEST_ANSWER: usize = 4 << 20;
/// Maximum length of a target, in octets. Each notification has it.
const TARGET: usize = 256;

/// Where data comes from.
#[derive(Clone, Copy, Debug)]
pub enum Source {
    /// The configuration in force.
    Configuration,
    /// A table.
    Table(&'static Table),
    /// A model of OpenConfig, made of other sources.
    OpenConfig(&'static OpenConfig),
}

/// Data of a source: the value of the node at the top of a model, as far as it was read.
#[derive(Clone, Debug)]
pub struct Part {
    /// The value.
    pub value: Arc<Value>,
    /// When it was read, in nanoseconds since 1970.
    pub at: i64,
    /// Whether every plane has answered.
    pub complete: bool,
}

impl Source {
    /// Sources to which a path leads, and which a caller may read.
    ///
    /// # Errors
    /// The path names something that the caller may not read. What it leads to by `*` is left out.
    pub fn of(path: &Path, known: &Known) -> Result<Vec<Source>, Status> {
        let mut sources = Vec::new();
        for model in path.models() {
            let named = path.steps.first().is_some_and(|step| step.name.is_some());
            match model.top {
                "configuration" => {
                    let may = known.caller.needs(Role::Support);
                    match (may, named) {
                        (Ok(()), _) => sources.push(Source::Configuration),
                        (Err(problem), true) => return Err(problem.into()),
                        (Err(_), false) => {}
                    }
                }
                "state" => sources.extend(tables(path, known)?),
                top => sources.extend(openconfig::find(top).map(Source::OpenConfig)),
            }
        }
        Ok(sources)
    }

    /// The model that it is part of.
    pub fn model(self) -> &'static Model {
        let top = match self {
            Source::Configuration => "configuration",
            Source::Table(_) => "state",
            Source::OpenConfig(of) => of.top,
        };
        model::model(top).expect("one of the models")
    }

    /// Whether it may be read again and again.
    pub fn is_cheap(self) -> bool {
        match self {
            Source::Configuration | Source::OpenConfig(_) => true,
            Source::Table(table) => table.has_metrics(),
        }
    }

    /// What a path leads to in its data.
    pub fn find<'a>(self, value: &'a Value, path: &Path) -> Vec<Found<'a>> {
        let model = self.model();
        let top = Path {
            steps: vec![Step::to(model.top)],
        };
        let mut steps = path.steps.get(1..).unwrap_or_default().to_vec();
        // its rows, not all of the state
        if let (Source::Table(table), []) = (self, &*steps) {
            steps = vec![Step::to(&model::node_name(table))];
        }
        select(&model.node, value, &top, &steps)
    }

    /// Reads it: of a table what the path's keys ask for, and the configuration when it is its turn.
    ///
    /// # Errors
    /// The control plane refuses or does not answer, or there is too much.
    pub async fn read(self, site: &Site, path: &Path) -> Result<Part, Status> {
        match self {
            Source::Configuration => {
                let _one = site.gateway.document().await;
                Ok(Part::new(configuration(site).await?.1, true))
            }
            Source::Table(table) => {
                let (rows, complete) = rows(site, table, path).await?;
                Ok(Part::of_rows(table, &rows, complete))
            }
            Source::OpenConfig(of) => {
                let (mut parts, everything) = (Vec::new(), Path::default());
                for origin in of.origins {
                    // whoever calls itself needs a box
                    parts.push(Box::pin(Source::from(*origin).read(site, &everything)).await?);
                }
                Ok(Part::made(of, &parts))
            }
        }
    }
}

impl From<Origin> for Source {
    fn from(origin: Origin) -> Self {
        match origin {
            Origin::Table(table) => Source::Table(table),
            Origin::Configuration => Source::Configuration,
        }
    }
}

impl Part {
    /// Data that was read just now.
    pub fn new(value: Value, complete: bool) -> Self {
        Part {
            value: Arc::new(value),
            at: now(),
            complete,
        }
    }

    /// Rows of a table.
    pub fn of_rows(table: &'static Table, rows: &[Value], complete: bool) -> Self {
        let name = model::node_name(table);
        let state = &Source::Table(table).model().node;
        let node = state.part(&name).expect("each table is a node");
        Part::new(json!({ name: shape::rows(table, node, rows) }), complete)
    }

    /// A model of OpenConfig, as old as the oldest of its origins.
    pub fn made(of: &OpenConfig, origins: &[Part]) -> Self {
        let values: Vec<&Value> = origins.iter().map(|origin| &*origin.value).collect();
        let ages = origins.iter().map(|origin| origin.at);
        Part {
            value: Arc::new((of.make)(&values)),
            at: ages.min().unwrap_or_else(now),
            complete: origins.iter().all(|origin| origin.complete),
        }
    }

    /// Shares the value of what was read before, if it is the same: then nobody compares it again. Where planes answer again, it is compared,
    /// because only they say what is gone.
    pub fn share(&mut self, before: &Part) {
        if self.complete == before.complete && self.value == before.value {
            self.value = before.value.clone();
        }
    }
}

/// The tables to which a path leads. `*` leads to those that may be read again and again.
fn tables(path: &Path, known: &Known) -> Result<Vec<Source>, Status> {
    let name = path.steps.get(1).and_then(|step| step.name.as_deref());
    match name.map(model::table) {
        None => {
            let may = |table: &&&Table| known.caller.needs(role(table)).is_ok();
            let tables = TABLES.iter().filter(|table| table.has_metrics());
            Ok(tables
                .filter(may)
                .map(|table| Source::Table(table))
                .collect())
        }
        Some(None) => Ok(Vec::new()),
        Some(Some(table)) => {
            known.caller.needs(role(table))?;
            if table.subscribers {
                // who looks at subscribers can be told afterwards
                let (who, table) = (&known.caller.name, table.name);
                tracing::info!(who, table, "subscribers are looked at");
            }
            Ok(vec![Source::Table(table)])
        }
    }
}

/// The configuration in force with its version.
///
/// # Errors
/// It is too large, or the control plane does not answer.
pub async fn configuration(site: &Site) -> Result<(u64, Value), Status> {
    let (version, tree) = tree(site).await?;
    let model = Source::Configuration.model();
    Ok((version, shape::configuration(&model.node, &tree)))
}

/// The configuration in force as the local API has it.
///
/// # Errors
/// It is too large, or the control plane does not answer.
pub async fn tree(site: &Site) -> Result<(u64, Value), Status> {
    let request = GetConfigurationRequest { version: None };
    let told = site
        .gateway
        .configuration()
        .get_configuration(request)
        .await;
    let told = told.map_err(|status| site.gateway.problem(&status))?;
    let told = told.into_inner();
    if told.tree.len() > LARGEST_TREE {
        return Err(Status::resource_exhausted(format!(
            "the configuration has more than {LARGEST_TREE} octets: use REST or the command line"
        )));
    }
    let tree = serde_json::from_str(&told.tree)
        .map_err(|error| Status::internal(format!("its tree is no JSON: {error}")))?;
    Ok((told.version, tree))
}

/// Rows of a table, and whether every plane has answered.
async fn rows(site: &Site, table: &Table, path: &Path) -> Result<(Vec<Value>, bool), Status> {
    let none = BTreeMap::new();
    let keys = path.steps.get(1).map_or(&none, |step| &step.keys);
    let failed = |status: Status| Status::from(site.gateway.problem(&status));
    // one session is found without a look at the others
    if let (true, Some(id)) = (table.name == SESSIONS.name, keys.get("id")) {
        let request = GetSessionRequest { id: id.clone() };
        let told = site.gateway.control_plane().get_session(request).await;
        let session = told.map_err(failed)?.into_inner().session;
        return Ok((session.iter().map(value).collect(), true));
    }
    let arguments = table.arguments.iter().filter_map(|argument| {
        let value = keys.get(&argument.name.replace('-', "_"))?;
        Some((argument.name.to_owned(), value.clone()))
    });
    let arguments = Arguments::read(table.arguments, arguments.collect(), &[]);
    let query = Query {
        arguments: arguments.map_err(Status::invalid_argument)?,
        limit: match table.has_metrics() {
            true => usize::MAX,
            false => MOST_LIMIT,
        },
        cursor: 0,
    };
    let page = site.gateway.page(table, &query).await.map_err(failed)?;
    if page.next.is_some() {
        // the only key that is looked up
        let way = match table.name == SESSIONS.name {
            true => "name the key `id`, or read it",
            false => "read it",
        };
        return Err(Status::resource_exhausted(format!(
            "{} has more than {MOST_LIMIT} rows: {way} page by page by REST",
            table.name
        )));
    }
    Ok((page.rows, page.missing.is_empty()))
}

/// Answers a Get.
pub async fn get(site: &Site, known: &Known, request: GetRequest) -> Result<GetResponse, Status> {
    refuse_extensions(&request.extension)?;
    check_models(&request.use_models)?;
    let encoding = Encoding::read(request.encoding).map_err(Status::unimplemented)?;
    let paths = read_paths(request.prefix.as_ref(), &request.path)?;
    let wanted = |source: &Source| match DataType::try_from(request.r#type) {
        Ok(DataType::Config) => source.model().is_configuration,
        Ok(DataType::State | DataType::Operational) => !source.model().is_configuration,
        _ => true,
    };
    let target = target(request.prefix.as_ref())?;
    let (mut answer, mut size) = (GetResponse::default(), 0);
    for path in paths {
        // each costs what a request costs
        known.admit(site)?;
        let sources = Source::of(&path, known)?.into_iter().filter(wanted);
        let sources: Vec<Source> = sources.collect();
        let mut update = Vec::new();
        for source in &sources {
            let part = source.read(site, &path).await?;
            for found in source.find(&part.value, &path) {
                let val = encoding.encode(source.model().name, found.node, found.value);
                let sent = Update {
                    path: Some(found.path.to_sent()),
                    val: Some(val),
                    ..Update::default()
                };
                size += sent.encoded_len();
                if size > LARGEST_ANSWER {
                    return Err(Status::resource_exhausted(format!(
                        "the answer has more than {LARGEST_ANSWER} octets: ask for less"
                    )));
                }
                update.push(sent);
            }
        }
        if update.is_empty() && path.is_exact() && !sources.is_empty() {
            return Err(Status::not_found(format!("{path}: there is no value")));
        }
        answer.notification.push(Notification {
            timestamp: now(),
            prefix: target.clone(),
            update,
            ..Notification::default()
        });
    }
    Ok(answer)
}

/// Paths of a request.
pub fn read_paths(
    prefix: Option<&proto::Path>,
    paths: &[proto::Path],
) -> Result<Vec<Path>, Status> {
    if paths.len() > PATHS {
        let why = format!(
            "{} paths are asked for: expected at most {PATHS}",
            paths.len()
        );
        return Err(Status::invalid_argument(why));
    }
    // a prefix alone is a path
    let root = [proto::Path::default()];
    let paths = match paths {
        [] if prefix.is_some() => &root[..],
        paths => paths,
    };
    let read = |path| Path::read(prefix, path).map_err(Status::invalid_argument);
    paths.iter().map(read).collect()
}

/// The target of a request, which answers have as well (section 2.2.2.1 of the specification).
///
/// # Errors
/// It is too long.
pub fn target(prefix: Option<&proto::Path>) -> Result<Option<proto::Path>, Status> {
    let target = prefix.map(|prefix| prefix.target.clone());
    let length = target.as_ref().map_or(0, String::len);
    if length > TARGET {
        let why =
            format!("the prefix's target has {length} octets: expected at most {TARGET} octets");
        return Err(Status::invalid_argument(why));
    }
    Ok(target.map(|target| proto::Path {
        target,
        ..proto::Path::default()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use northbound::catalogue::{ASSOCIATIONS, PORTS};

    fn steps(name: Option<&str>, key: &str, value: &str) -> Path {
        let step = Step {
            name: name.map(str::to_owned),
            keys: BTreeMap::from([(key.to_owned(), value.to_owned())]),
        };
        Path {
            steps: vec![Step::to("state"), step],
        }
    }

    #[test]
    fn keys_count_behind_any_name() {
        let rows = [
            json!({"user_plane": "up1", "name": "a"}),
            json!({"user_plane": "up2", "name": "b"}),
        ];
        let ports = Source::Table(&PORTS);
        let part = Part::of_rows(&PORTS, &rows, true);
        for name in [None, Some("ports")] {
            let found = ports.find(&part.value, &steps(name, "user_plane", "up2"));
            let paths: Vec<String> = found.iter().map(|found| found.path.to_string()).collect();
            assert_eq!(paths, ["/state/ports[name=b][user_plane=up2]"]);
        }
        // a table without this key has no such rows
        let other = Source::Table(&ASSOCIATIONS);
        let part = Part::of_rows(&ASSOCIATIONS, &[json!({"node_id": "up1"})], true);
        let found = other.find(&part.value, &steps(None, "user_plane", "up1"));
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn only_what_is_equal_and_as_complete_is_shared() {
        let part = |name: &str, complete| Part::new(name.into(), complete);
        let before = part("a", true);
        for (mut read, shared) in [
            (part("a", true), true),
            (part("a", false), false),
            (part("b", true), false),
        ] {
            read.share(&before);
            assert_eq!(Arc::ptr_eq(&read.value, &before.value), shared, "{read:?}");
        }
    }
}

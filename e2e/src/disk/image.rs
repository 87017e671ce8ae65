//! What is on a disk, and what changes it.

use anyhow::Result;
use std::collections::BTreeMap;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::Path;

/// The number of a file or folder.
pub type Inode = u64;

/// The folder that is always there.
pub const ROOT: Inode = 1;

/// A file or a folder.
#[derive(Clone, Debug)]
pub enum Node {
    /// Its content.
    File(Vec<u8>),
    /// Its names.
    Folder(BTreeMap<String, Inode>),
}

/// A change, or a sync.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A new file or folder.
    Make {
        /// Where.
        folder: Inode,
        /// What it is called.
        name: String,
        /// Its number.
        node: Inode,
        /// It is a folder.
        is_folder: bool,
    },
    /// A name goes.
    Remove {
        /// Where.
        folder: Inode,
        /// The name.
        name: String,
    },
    /// A file gets another name, and whatever had that one loses it.
    Rename {
        /// Where.
        folder: Inode,
        /// The name before.
        from: String,
        /// The name from now on.
        to: String,
        /// What is renamed.
        node: Inode,
    },
    /// Octets are written.
    Write {
        /// Into this file.
        file: Inode,
        /// From here on.
        at: usize,
        /// These.
        octets: Vec<u8>,
    },
    /// A file is cut off or made longer.
    Resize {
        /// Which.
        file: Inode,
        /// To so many octets.
        length: usize,
    },
    /// From here on everything before about this file or folder is certain.
    Sync(Inode),
}

impl Change {
    /// The file or folder whose sync makes it certain.
    pub fn subject(&self) -> Inode {
        match *self {
            Change::Make { folder, .. }
            | Change::Remove { folder, .. }
            | Change::Rename { folder, .. } => folder,
            Change::Write { file, .. } | Change::Resize { file, .. } => file,
            Change::Sync(node) => node,
        }
    }

    /// As people read it; `names` has what is called how.
    pub fn told(&self, names: &BTreeMap<Inode, &str>) -> String {
        let called = |node: &Inode| names.get(node).copied().unwrap_or("the root");
        match self {
            Change::Make { folder, name, .. } => format!("{name} is made in {}", called(folder)),
            Change::Remove { folder, name } => format!("{name} goes from {}", called(folder)),
            Change::Rename { from, to, .. } => format!("{from} becomes {to}"),
            Change::Write { file, at, octets } => {
                format!(
                    "{} octets are written at {at} of {}",
                    octets.len(),
                    called(file)
                )
            }
            Change::Resize { file, length } => format!("{} gets {length} octets", called(file)),
            Change::Sync(node) => format!("{} is synced", called(node)),
        }
    }

    /// Whether it changes a folder.
    pub fn is_of_names(&self) -> bool {
        matches!(
            self,
            Change::Make { .. } | Change::Remove { .. } | Change::Rename { .. }
        )
    }
}

/// All files and folders, those without a name among them.
#[derive(Clone, Debug)]
pub struct Image(BTreeMap<Inode, Node>);

impl Default for Image {
    fn default() -> Self {
        Image(BTreeMap::from([(ROOT, Node::Folder(BTreeMap::new()))]))
    }
}

impl Image {
    /// A file or folder.
    pub fn node(&self, node: Inode) -> Option<&Node> {
        self.0.get(&node)
    }

    /// The number of the next file or folder.
    pub fn next(&self) -> Inode {
        self.0.len() as Inode + ROOT
    }

    /// What a name in a folder stands for.
    pub fn find(&self, folder: Inode, name: &str) -> Option<Inode> {
        match self.0.get(&folder)? {
            Node::Folder(names) => names.get(name).copied(),
            Node::File(_) => None,
        }
    }

    /// An empty file or folder, without a name yet.
    pub fn make(&mut self, node: Inode, is_folder: bool) {
        self.0.entry(node).or_insert_with(|| match is_folder {
            true => Node::Folder(BTreeMap::new()),
            false => Node::File(Vec::new()),
        });
    }

    /// Makes a change. What it refers to may be missing: then an earlier change was lost.
    pub fn apply(&mut self, change: &Change) {
        if let Change::Make {
            node, is_folder, ..
        } = change
        {
            self.make(*node, *is_folder);
        }
        match self.0.get_mut(&change.subject()) {
            Some(Node::Folder(names)) => change_names(names, change),
            Some(Node::File(content)) => change_content(content, change),
            None => {}
        }
    }

    /// Writes what has a name into an empty folder.
    pub fn write_to(&self, to: &Path) -> Result<()> {
        self.visit(ROOT, to, &mut |path, node| match node {
            Node::Folder(_) => fs::create_dir(path).or_else(|error| match path == to {
                true => Ok(()),
                false => Err(error),
            }),
            Node::File(content) => fs::write(path, content),
        })?;
        Ok(())
    }

    fn visit<E>(
        &self,
        node: Inode,
        path: &Path,
        see: &mut impl FnMut(&Path, &Node) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(found) = self.0.get(&node) else {
            return Ok(());
        };
        see(path, found)?;
        if let Node::Folder(names) = found {
            for (name, node) in names {
                self.visit(*node, &path.join(name), see)?;
            }
        }
        Ok(())
    }
}

/// What has a name.
impl Hash for Image {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let hashed = self.visit(ROOT, Path::new(""), &mut |path, node| {
            path.hash(state);
            if let Node::File(content) = node {
                content.hash(state);
            }
            Ok::<(), std::convert::Infallible>(())
        });
        let Ok(()) = hashed;
    }
}

fn change_names(names: &mut BTreeMap<String, Inode>, change: &Change) {
    match change {
        Change::Make { name, node, .. } => {
            names.insert(name.clone(), *node);
        }
        Change::Remove { name, .. } => {
            names.remove(name);
        }
        Change::Rename { from, to, node, .. } => {
            names.remove(from);
            names.insert(to.clone(), *node);
        }
        _ => {}
    }
}

fn change_content(content: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Write { at, octets, .. } => {
            let end = at + octets.len();
            content.resize(content.len().max(end), 0);
            content[*at..end].copy_from_slice(octets);
        }
        Change::Resize { length, .. } => content.resize(*length, 0),
        _ => {}
    }
}

//! The disk's side of FUSE.

use super::image::{Change, Image, Inode, Node, ROOT};
use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory,
    ReplyEmpty, ReplyEntry, ReplyWrite, Request, TimeOrNow, WriteFlags,
};
use std::ffi::OsStr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Nobody changes anything but by the kernel, which may remember what it was told.
const TTL: Duration = Duration::from_secs(1);

/// What is on the disk, and how it came there.
#[derive(Debug, Default)]
pub struct Recording {
    image: Image,
    /// Every change and sync, in order.
    pub changes: Vec<Change>,
}

impl Recording {
    fn record(&mut self, change: Change) {
        self.image.apply(&change);
        self.changes.push(change);
    }

    fn attributes(&self, inode: Inode) -> Option<FileAttr> {
        let (kind, perm, size) = match self.image.node(inode)? {
            Node::Folder(_) => (FileType::Directory, 0o700, 0),
            Node::File(content) => (FileType::RegularFile, 0o600, content.len() as u64),
        };
        Some(FileAttr {
            ino: INodeNo(inode),
            size,
            blocks: size.div_ceil(512),
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind,
            perm,
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            flags: 0,
            blksize: 4096,
        })
    }

    /// Makes a file or a folder.
    fn make(&mut self, folder: Inode, name: &OsStr, is_folder: bool) -> Result<FileAttr, Errno> {
        let name = name.to_str().ok_or(Errno::EINVAL)?.to_owned();
        if self.image.find(folder, &name).is_some() {
            return Err(Errno::EEXIST);
        }
        let node = self.image.next();
        self.record(Change::Make {
            folder,
            name,
            node,
            is_folder,
        });
        self.attributes(node).ok_or(Errno::EIO)
    }

    fn remove(&mut self, folder: Inode, name: &OsStr) -> Result<(), Errno> {
        let name = name.to_str().ok_or(Errno::EINVAL)?.to_owned();
        let found = self.image.find(folder, &name).ok_or(Errno::ENOENT)?;
        if matches!(self.image.node(found), Some(Node::Folder(names)) if !names.is_empty()) {
            return Err(Errno::ENOTEMPTY);
        }
        self.record(Change::Remove { folder, name });
        Ok(())
    }

    /// Gives a file another name. From folder to folder there is no way: it would be certain by two syncs.
    fn rename(&mut self, from: (INodeNo, &OsStr), to: (INodeNo, &OsStr)) -> Result<(), Errno> {
        if from.0 != to.0 {
            return Err(Errno::EXDEV);
        }
        let (folder, from, to) = (from.0.0, from.1.to_str(), to.1.to_str());
        let (Some(from), Some(to)) = (from, to) else {
            return Err(Errno::EINVAL);
        };
        let node = self.image.find(folder, from).ok_or(Errno::ENOENT)?;
        self.record(Change::Rename {
            folder,
            from: from.into(),
            to: to.into(),
            node,
        });
        Ok(())
    }
}

/// Serves the disk.
pub struct Recorder(pub Arc<Mutex<Recording>>);

pub fn lock(recording: &Mutex<Recording>) -> MutexGuard<'_, Recording> {
    recording
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Filesystem for Recorder {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let disk = lock(&self.0);
        let found = name
            .to_str()
            .and_then(|name| disk.image.find(parent.0, name));
        match found.and_then(|inode| disk.attributes(inode)) {
            Some(found) => reply.entry(&TTL, &found, Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match lock(&self.0).attributes(inode.0) {
            Some(found) => reply.attr(&TTL, &found),
            None => reply.error(Errno::ENOENT),
        }
    }

    /// Of attributes the length alone matters here.
    fn setattr(
        &self,
        _: &Request,
        inode: INodeNo,
        _: Option<u32>,
        _: Option<u32>,
        _: Option<u32>,
        size: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let mut disk = lock(&self.0);
        if let Some(size) = size {
            disk.record(Change::Resize {
                file: inode.0,
                length: size as usize,
            });
        }
        match disk.attributes(inode.0) {
            Some(found) => reply.attr(&TTL, &found),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn mkdir(&self, _: &Request, parent: INodeNo, name: &OsStr, _: u32, _: u32, reply: ReplyEntry) {
        match lock(&self.0).make(parent.0, name, true) {
            Ok(made) => reply.entry(&TTL, &made, Generation(0)),
            Err(error) => reply.error(error),
        }
    }

    fn create(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        _: u32,
        _: u32,
        _: i32,
        reply: ReplyCreate,
    ) {
        match lock(&self.0).make(parent.0, name, false) {
            Ok(made) => reply.created(
                &TTL,
                &made,
                Generation(0),
                FileHandle(0),
                FopenFlags::empty(),
            ),
            Err(error) => reply.error(error),
        }
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        answer(reply, lock(&self.0).remove(parent.0, name));
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        answer(reply, lock(&self.0).remove(parent.0, name));
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        if !flags.is_empty() {
            return reply.error(Errno::EINVAL);
        }
        let done = lock(&self.0).rename((parent, name), (new_parent, new_name));
        answer(reply, done);
    }

    fn read(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let disk = lock(&self.0);
        let Some(Node::File(content)) = disk.image.node(inode.0) else {
            return reply.error(Errno::EISDIR);
        };
        let from = content.len().min(offset as usize);
        let to = content.len().min(from + size as usize);
        reply.data(&content[from..to]);
    }

    fn write(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        lock(&self.0).record(Change::Write {
            file: inode.0,
            at: offset as usize,
            octets: data.into(),
        });
        reply.written(data.len() as u32);
    }

    fn fsync(&self, _: &Request, inode: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        lock(&self.0).record(Change::Sync(inode.0));
        reply.ok();
    }

    fn fsyncdir(&self, _: &Request, inode: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        lock(&self.0).record(Change::Sync(inode.0));
        reply.ok();
    }

    fn readdir(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let disk = lock(&self.0);
        let Some(Node::Folder(names)) = disk.image.node(inode.0) else {
            return reply.error(Errno::ENOTDIR);
        };
        // Nobody goes up from here: both of the dots may be the root.
        let dots = [".", ".."].map(|name| (name, ROOT));
        let named = names.iter().map(|(name, node)| (name.as_str(), *node));
        for (n, (name, node)) in dots
            .into_iter()
            .chain(named)
            .enumerate()
            .skip(offset as usize)
        {
            let kind = match disk.image.node(node) {
                Some(Node::Folder(_)) => FileType::Directory,
                _ => FileType::RegularFile,
            };
            if reply.add(INodeNo(node), n as u64 + 1, kind, name) {
                break;
            }
        }
        reply.ok();
    }
}

fn answer(reply: ReplyEmpty, done: Result<(), Errno>) {
    match done {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(error),
    }
}

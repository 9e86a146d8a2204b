//! The `security` record: programs, files and connections, from calls that go on.

use super::Eyes;
use super::decode::open_flags;
use super::own::Place;
use super::paths_inside::Target;
use skillcell_audit::{Access, Change, Event, FileOpened, RecordFailed, Task, Text};
use skillcell_linux::seccomp::Notification;

const AT_FDCWD: i32 = -100;
/// `O_CREAT` and `O_TRUNC` write whatever the access mode says.
const CREATES: u32 = 0o1100;

/// A folder's descriptor and the address of a path.
type At = (i32, u64);

impl Eyes {
    pub(super) fn note_security(
        &mut self,
        call: &Notification,
        name: &str,
        task: Task,
    ) -> Result<(), RecordFailed> {
        let args = &call.args;
        let at = |dir: usize, path: usize| (args[dir] as i32, args[path]);
        let cwd = |path: usize| (AT_FDCWD, args[path]);
        match name {
            "execve" => self.program(call, task, cwd(0), args[1]),
            "execveat" => self.program(call, task, at(0, 1), args[2]),
            "exit_group" => self.note(
                task,
                &Event::ProcessEnded {
                    code: args[0] as i32 & 0xff,
                },
            ),
            "openat" => self.opened(call, task, at(0, 1), args[2] as u32),
            "open" => self.opened(call, task, cwd(0), args[1] as u32),
            "creat" => self.opened(call, task, cwd(0), 0o1101),
            "truncate" => self.changed(call, task, Change::Truncate, cwd(0), None),
            "unlink" | "rmdir" => self.changed(call, task, Change::Remove, cwd(0), None),
            "unlinkat" => self.changed(call, task, Change::Remove, at(0, 1), None),
            "rename" => self.changed(call, task, Change::Rename, cwd(0), Some(cwd(1))),
            "renameat" | "renameat2" => {
                self.changed(call, task, Change::Rename, at(0, 1), Some(at(2, 3)))
            }
            "mkdir" => self.changed(call, task, Change::MakeFolder, cwd(0), None),
            "mkdirat" => self.changed(call, task, Change::MakeFolder, at(0, 1), None),
            "link" => self.changed(call, task, Change::Link, cwd(1), Some(cwd(0))),
            "linkat" => self.changed(call, task, Change::Link, at(2, 3), Some(at(0, 1))),
            "symlink" => self.symlink(call, task, cwd(1), args[0]),
            "symlinkat" => self.symlink(call, task, at(1, 2), args[0]),
            "mknod" => self.changed(call, task, Change::MakeNode, cwd(0), None),
            "mknodat" => self.changed(call, task, Change::MakeNode, at(0, 1), None),
            "chmod" | "chown" | "lchown" => {
                self.changed(call, task, Change::Attributes, cwd(0), None)
            }
            "fchmodat" | "fchmodat2" | "fchownat" => {
                self.changed(call, task, Change::Attributes, at(0, 1), None)
            }
            "bind" => self.bound(call, task),
            "connect" => {
                let address = self.reader().address(call, args[1], args[2]);
                let address = self.text(&address.unwrap_or_else(|| b"?".to_vec()));
                self.note(task, &Event::Connect { address })
            }
            _ => Ok(()),
        }
    }

    fn text(&self, bytes: &[u8]) -> Text {
        self.scene.recorder.text(bytes)
    }

    /// Absolute, by name; `None` where memory can't be read, and then the call fails as well.
    fn absolute(&self, call: &Notification, (dir, address): At) -> Option<Vec<u8>> {
        let path = self.reader().path(call, address)?;
        if path.first() == Some(&b'/') {
            return Some(path);
        }
        match Target::new(call.pid, dir, &path) {
            Some(target) => Some(target.into_bytes()),
            // In a folder that nobody can name, which is no folder of its own.
            None => Some([b"?/", path.as_slice()].concat()),
        }
    }

    fn program(
        &mut self,
        call: &Notification,
        task: Task,
        program: At,
        argv: u64,
    ) -> Result<(), RecordFailed> {
        self.tally.program();
        if let Some(first) = self.scene.first.take() {
            let event = Event::ProcessStarted {
                program: self.text(&first.path),
                argv: first.argv.iter().map(|a| self.text(a)).collect(),
                argc: first.argv.len() as u64,
            };
            return self.note(task, &event);
        }
        let program = self.absolute(call, program);
        let (argv, argc) = self.reader().argv(call, argv);
        let event = Event::ProcessStarted {
            program: self.text(&program.unwrap_or_else(|| b"?".to_vec())),
            argv,
            argc,
        };
        self.note(task, &event)
    }

    fn opened(
        &mut self,
        call: &Notification,
        task: Task,
        file: At,
        flags: u32,
    ) -> Result<(), RecordFailed> {
        let access = match flags & 3 {
            0 if flags & CREATES == 0 => Access::Read,
            0 | 1 => Access::Write,
            _ => Access::ReadWrite,
        };
        let mut path = self.absolute(call, file);
        if access == Access::Read
            && let Some(named) = &path
        {
            match self.scene.own.place(named) {
                Place::Own => return Ok(()),
                Place::Bundle => match Target::followed(call.pid, named) {
                    Ok(None) => return Ok(()),
                    Ok(Some(real)) if self.scene.own.place(&real) != Place::Elsewhere => {
                        return Ok(());
                    }
                    Ok(Some(real)) => path = Some(real),
                    // Nobody can say where it leads, so its name is worth an event.
                    Err(_) => {}
                },
                Place::Elsewhere => {}
            }
        }
        self.tally.file(access);
        let event = Event::FileOpened(FileOpened {
            path: self.text(&path.unwrap_or_else(|| b"?".to_vec())),
            access,
            flags: open_flags(flags),
        });
        self.note(task, &event)
    }

    fn changed(
        &mut self,
        call: &Notification,
        task: Task,
        change: Change,
        path: At,
        to: Option<At>,
    ) -> Result<(), RecordFailed> {
        let words = |at: At| {
            let path = self.absolute(call, at);
            self.text(&path.unwrap_or_else(|| b"?".to_vec()))
        };
        let event = Event::FileChanged {
            change,
            path: words(path),
            to: to.map(words),
        };
        self.note(task, &event)
    }

    /// A named socket is a file; other addresses belong to the cell alone.
    fn bound(&mut self, call: &Notification, task: Task) -> Result<(), RecordFailed> {
        let address = self.reader().address(call, call.args[1], call.args[2]);
        let Some(path) = address.as_deref().and_then(|a| a.strip_prefix(b"unix:")) else {
            return Ok(());
        };
        if matches!(path.first(), None | Some(b'@')) {
            return Ok(());
        }
        let path = match Target::new(call.pid, AT_FDCWD, path) {
            Some(target) => target.into_bytes(),
            None => [b"?/", path].concat(),
        };
        let event = Event::FileChanged {
            change: Change::MakeNode,
            path: self.text(&path),
            to: None,
        };
        self.note(task, &event)
    }

    /// Where a link leads is text, not a path.
    fn symlink(
        &mut self,
        call: &Notification,
        task: Task,
        path: At,
        target: u64,
    ) -> Result<(), RecordFailed> {
        let path = self.absolute(call, path);
        let target = self.reader().path(call, target);
        let event = Event::FileChanged {
            change: Change::Symlink,
            path: self.text(&path.unwrap_or_else(|| b"?".to_vec())),
            to: Some(self.text(&target.unwrap_or_else(|| b"?".to_vec()))),
        };
        self.note(task, &event)
    }
}

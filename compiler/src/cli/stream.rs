//! The two streams of a command. A stream knows how wide it is, so that text fits a terminal.

use std::io::{self, Write};

use anstream::AutoStream;

use crate::render::text::Width;

/// Where a command prints.
pub trait Stream: Write {
    /// How wide text may be here.
    fn width(&self) -> Width;
}

/// Memory, in tests.
impl Stream for Vec<u8> {
    fn width(&self) -> Width {
        Width::default()
    }
}

impl Stream for AutoStream<io::StdoutLock<'static>> {
    fn width(&self) -> Width {
        Width::of(columns(terminal_size::terminal_size_of(io::stdout())))
    }
}

impl Stream for AutoStream<io::StderrLock<'static>> {
    fn width(&self) -> Width {
        Width::of(columns(terminal_size::terminal_size_of(io::stderr())))
    }
}

fn columns(size: Option<(terminal_size::Width, terminal_size::Height)>) -> Option<usize> {
    size.map(|(terminal_size::Width(columns), _)| usize::from(columns))
}

//! A recording that is followed while it runs, compared with the same recording when it is whole.

mod batches;
mod feed;
mod files;
mod hostile;
mod kept;
mod messages;

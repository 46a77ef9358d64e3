//! The output files of profiles: folded stacks, flame graphs, call graphs, and files for other viewers.

mod flame_graph;
mod folded;
mod graph_picture;
mod pprof;
mod viewers;
pub(super) mod write_files;

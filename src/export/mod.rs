//! Writers of what people open, one format a module.

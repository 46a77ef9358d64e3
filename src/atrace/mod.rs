//! What atrace defines: tags, categories, and the grammar of markers that writer and reader share.

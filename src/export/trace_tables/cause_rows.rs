//! The rows of the table `cause`.

use std::io;

use crate::tables::{Cell, TableId, TraceRows};
use crate::why::Model;

/// Makes a row of each cause of each launch and of each late frame.
pub(super) fn push_causes(model: &Model, rows: &mut TraceRows) -> io::Result<()> {
    for span in model.measured_spans() {
        let explained = model.explain(&span.asked);
        for part in &explained.causes {
            let path = part.path_text();
            rows.push(
                TableId::Cause,
                [
                    span.kind.name().into(),
                    Some(&span.app).filter(|app| !app.is_empty()).into(),
                    span.frame.into(),
                    Cell::Int(0),
                    explained.begin.into(),
                    explained.duration.into(),
                    part.cause_name().into(),
                    (&path).into(),
                    Some(&part.subject).filter(|subject| !subject.is_empty()).into(),
                    part.ns.into(),
                    part.count.into(),
                ],
            )?;
        }
    }
    Ok(())
}

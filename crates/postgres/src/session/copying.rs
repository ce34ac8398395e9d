//! COPY as a conversation: lines that the client brings are kept until it says that those were all.

use super::Session;
use super::incoming::Incoming;
use super::rows::value_types;
use crate::copy::{self, COPY_BYTES_MAX, Copy, Header, Layout, What};
use crate::error::{PgError, sqlstate};
use crate::execute::Destination;
use crate::outcome::Outcome;
use crate::plan::Plan;
use crate::types;
use crate::wire::{Copying, Frontend, Output};

impl Session {
    /// The end of a message of the simple protocol, unless it goes on with rows.
    pub(super) fn end_query(&mut self, result: Result<(), PgError>, out: &mut Output) {
        if let Err(error) = result {
            self.executor.fail();
            out.error(&error);
        }
        if self.incoming.is_none() {
            out.ready(self.executor.status());
        }
    }

    /// Carries out a COPY. Says whether the client has to bring rows first.
    pub(super) fn copy(
        &mut self,
        plan: &Plan,
        copy: &Copy,
        rest: Option<&[String]>,
        out: &mut Output,
    ) -> Result<bool, PgError> {
        let layout = &copy.layout;
        let outcome = match &copy.what {
            What::From(table) => {
                let into = self.executor.copy_into(plan, table)?;
                out.copy_in(into.columns.len());
                let (layout, rest) = (layout.clone(), rest.map(<[String]>::to_vec));
                self.incoming = Some(Incoming { into, layout, data: Vec::new(), rest });
                return Ok(true);
            }
            What::To(table) => self.executor.copy_out(plan, Ok(table))?,
            What::Query(query) => self.executor.copy_out(plan, Err(query))?,
        };
        self.give_lines(&outcome, layout, out)?;
        Ok(false)
    }

    fn give_lines(&self, outcome: &Outcome, layout: &Layout, out: &mut Output) -> Result<(), PgError> {
        let (rows, types) = (&outcome.rows, value_types(outcome));
        let zone = self.executor.settings.offset();
        out.copy_out(rows.columns.len());
        if layout.header != Header::None {
            let names = rows.columns.iter().map(|column| column.name.as_str());
            out.copy_data(|bytes| copy::header(names, layout, bytes));
        }
        for row in &rows.rows {
            let mut texts = Vec::with_capacity(row.len());
            for (value, type_id) in row.iter().zip(&types) {
                let mut text = Vec::new();
                let is_there = types::put(value, *type_id, types::TEXT_FORMAT, zone, &mut text)?;
                texts.push(is_there.then_some(text));
            }
            out.copy_data(|bytes| copy::line(texts.iter().map(Option::as_deref), layout, bytes));
        }
        out.copy_done();
        out.complete(&format!("COPY {}", rows.rows.len()));
        Ok(())
    }

    /// Takes a message of a client that brings rows.
    pub(super) fn bring(&mut self, message: Frontend, out: &mut Output) {
        let Some(incoming) = &mut self.incoming else { return };
        let failure = match message {
            Frontend::Copy(Copying::Data(data)) if incoming.data.len() + data.len() <= COPY_BYTES_MAX => {
                incoming.data.extend(data);
                return;
            }
            // Drivers of the extended protocol send them before they know that rows are waited for.
            Frontend::Flush | Frontend::Sync => return,
            Frontend::Copy(Copying::Done) => None,
            Frontend::Copy(Copying::Data(_)) => Some(copy::too_much(&format!("{COPY_BYTES_MAX} bytes"))),
            Frontend::Copy(Copying::Fail(why)) => Some(PgError::new("57014", format!("COPY from stdin failed: {why}"))),
            _ => Some(PgError::new(sqlstate::PROTOCOL, "a message that is no part of the COPY")),
        };
        let Some(Incoming { into, layout, data, rest }) = self.incoming.take() else { return };
        let result = failure.map_or_else(|| self.take_lines(&into, &layout, &data, out), Err);
        match rest {
            None => self.report(result, out),
            Some(rest) => {
                let result = result.and_then(|()| self.query(rest, out));
                self.end_query(result, out);
            }
        }
    }

    fn take_lines(
        &mut self,
        into: &Destination,
        layout: &Layout,
        data: &[u8],
        out: &mut Output,
    ) -> Result<(), PgError> {
        let rows = copy::read(data, layout, &into.columns)?;
        let count = self.executor.copy_rows(into, rows)?;
        out.complete(&format!("COPY {count}"));
        if let Some(notice) = self.executor.provenance() {
            out.notice(&notice);
        }
        Ok(())
    }
}

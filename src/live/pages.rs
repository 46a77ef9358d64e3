//! The kernel's pages of a recording that are kept in memory.

use std::collections::VecDeque;
use std::sync::Arc;

use super::kept::Kept;
use crate::clock::Timestamp;
use crate::formats::trace_dat::FollowedPage;
use crate::ids::Cpu;
use crate::trace_dat::recorder_stream::StreamedHead;

/// The pages of the last seconds, by CPU.
pub(super) struct KeptPages {
    keep_ns: u64,
    /// The most bytes of pages.
    limit: usize,
    head: Option<Arc<StreamedHead>>,
    cpus: Vec<VecDeque<FollowedPage>>,
    bytes: usize,
    /// Whether pages of the recording have been dropped.
    is_cut: bool,
    /// Whether pages were dropped before their time, because they are too many.
    pub is_over_limit: bool,
}

impl KeptPages {
    pub fn new(keep_ns: u64, limit: usize) -> KeptPages {
        KeptPages {
            keep_ns,
            limit,
            head: None,
            cpus: Vec::new(),
            bytes: 0,
            is_cut: false,
            is_over_limit: false,
        }
    }

    /// Begins with the head of a stream. The pages of the stream before it stay, where `continues` says that
    /// this head describes them too.
    pub fn begin(&mut self, head: &StreamedHead, continues: bool) {
        let had_pages = self.bytes > 0;
        if !continues {
            self.cpus.clear();
            self.bytes = 0;
        }
        self.is_cut |= had_pages;
        self.cpus.resize_with(head.info.cpus as usize, VecDeque::new);
        self.head = Some(Arc::new(head.clone()));
    }

    /// The head as it is from now on.
    pub fn set_head(&mut self, head: &StreamedHead) {
        self.head = Some(Arc::new(head.clone()));
    }

    pub fn add(&mut self, cpu: Cpu, page: FollowedPage) {
        if let Some(pages) = self.cpus.get_mut(cpu.index()) {
            self.bytes += page.bytes.len();
            pages.push_back(page);
        }
        while self.bytes > self.limit {
            self.is_over_limit = true;
            let firsts = self.cpus.iter().enumerate();
            let oldest = firsts.filter_map(|(at, pages)| Some((pages.front()?.ts, at))).min();
            let Some((_, at)) = oldest else { break };
            self.drop_first(at);
        }
    }

    /// Drops the pages whose events all came before the seconds that are kept, at the time `now`.
    pub fn trim(&mut self, now: Timestamp) {
        let since = now.saturating_sub(self.keep_ns);
        for at in 0..self.cpus.len() {
            while self.cpus[at].get(1).is_some_and(|second| second.ts <= since) {
                self.drop_first(at);
            }
        }
    }

    fn drop_first(&mut self, at: usize) {
        if let Some(page) = self.cpus[at].pop_front() {
            self.bytes -= page.bytes.len();
            self.is_cut = true;
        }
    }

    /// The pages that are there now. `times` are the session's start and its last time.
    pub fn kept(&self, title: &str, times: Option<(Timestamp, Timestamp)>) -> Kept {
        let cpus = self.cpus.iter().map(|pages| pages.iter().cloned().collect()).collect();
        Kept { head: self.head.clone(), cpus, is_cut: self.is_cut, title: title.to_owned(), times }
    }
}

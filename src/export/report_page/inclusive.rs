//! How long each method took: the page deals colours by it.

/// The inclusive time of each method over all tracks. A recursive call does not count again.
#[derive(Default)]
pub(super) struct InclusiveTimes {
    /// By method id, ns.
    totals: Vec<u64>,
    /// By method id: how many of the track's open calls are of this method.
    open: Vec<u32>,
}

impl InclusiveTimes {
    /// `methods` is the number of methods.
    pub fn new(methods: usize) -> InclusiveTimes {
        InclusiveTimes { totals: vec![0; methods], open: vec![0; methods] }
    }

    /// Adds the calls of a track in the order of their begins: depth, method id, and length in ns.
    pub fn add(&mut self, calls: impl Iterator<Item = (usize, u32, u64)>) {
        self.open.fill(0);
        let mut stack: Vec<usize> = Vec::new();
        for (depth, method, length) in calls {
            let method = method as usize;
            while stack.len() > depth {
                stack.pop().into_iter().for_each(|ended| self.open[ended] -= 1);
            }
            let (Some(total), Some(open)) = (self.totals.get_mut(method), self.open.get_mut(method)) else {
                continue;
            };
            if *open == 0 {
                *total += length;
            }
            *open += 1;
            stack.push(method);
        }
    }

    /// By method id, ns.
    pub fn totals(self) -> Vec<u64> {
        self.totals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outermost_call_of_a_recursion_counts() {
        let mut times = InclusiveTimes::new(3);
        times.add([(0, 0, 100), (1, 1, 60), (2, 0, 40), (2, 1, 10), (1, 1, 5), (0, 0, 7)].into_iter());
        times.add([(0, 1, 3)].into_iter());
        assert_eq!(times.totals(), [107, 68, 0]);
    }
}

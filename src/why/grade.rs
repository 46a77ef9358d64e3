//! How a cause is known.

/// How a cause is known: the best first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Grade {
    /// An event says so.
    #[default]
    Event,
    /// The wake-up that ended a wait says so: whoever wakes a thread is what it waited for.
    WakeUp,
    /// No event says so: it follows from names, times, or what is not there.
    Inferred,
}

/// A grade counts for several stretches of time together where it holds for this part of them, one in 10, or
/// a weaker grade does.
const SHARE_THAT_COUNTS: u64 = 10;

impl Grade {
    const ALL: [Grade; 3] = [Grade::Event, Grade::WakeUp, Grade::Inferred];

    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Grade::Event => "event",
            Grade::WakeUp => "wake_up",
            Grade::Inferred => "inferred",
        }
    }

    /// The sign in text.
    pub fn sign(self) -> char {
        match self {
            Grade::Event => ' ',
            Grade::WakeUp => '~',
            Grade::Inferred => '?',
        }
    }
}

/// How long each grade holds, ns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct GradedTime([u64; 3]);

impl GradedTime {
    pub fn add(&mut self, grade: Grade, ns: u64) {
        self.0[grade as usize] += ns;
    }

    /// The weakest grade that counts.
    pub fn grade(self) -> Grade {
        let all: u64 = self.0.iter().sum();
        let mut ns = 0;
        let weakest_first = Grade::ALL.into_iter().rev();
        let mut counting = weakest_first.filter(|grade| {
            ns += self.0[*grade as usize];
            ns > 0 && ns >= all / SHARE_THAT_COUNTS
        });
        counting.next().unwrap_or_default()
    }
}

/// The line that explains the signs which lines of text have; `None` where none has one.
pub(crate) fn legend(grades: impl Iterator<Item = Grade>) -> Option<String> {
    let mut grades: Vec<Grade> = grades.filter(|grade| *grade != Grade::Event).collect();
    grades.sort_unstable();
    grades.dedup();
    let words = grades.iter().map(|grade| match grade {
        Grade::WakeUp => "~ told by the wake-up that ended the wait",
        _ => "? inferred: no event says so",
    });
    let words: Vec<&str> = words.collect();
    (!words.is_empty()).then(|| format!("({})", words.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_part_of_a_weak_grade_does_not_count() {
        let mut time = GradedTime::default();
        assert_eq!(time.grade(), Grade::Event);
        time.add(Grade::Event, 95);
        time.add(Grade::Inferred, 5);
        assert_eq!(time.grade(), Grade::Event);
        time.add(Grade::WakeUp, 5);
        assert_eq!(time.grade(), Grade::WakeUp, "a weaker grade counts as this one");
        time.add(Grade::Inferred, 20);
        assert_eq!(time.grade(), Grade::Inferred);
    }
}

//! The kernel's soft interrupts by their number: `vec` of `softirq_entry`, `softirq_exit` and `softirq_raise`
//! (include/linux/interrupt.h; the names are those of include/trace/events/irq.h).

/// The names of the soft interrupts; the index is the number.
pub const NAMES: [&str; 10] =
    ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

/// The name of the soft interrupt with this number.
pub fn name(number: i64) -> Option<&'static str> {
    NAMES.get(usize::try_from(number).ok()?).copied()
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_number_outside_the_list_has_no_name() {
        assert_eq!((super::name(0), super::name(9)), (Some("HI"), Some("RCU")));
        assert_eq!((super::name(-1), super::name(10)), (None, None));
    }
}

//! Generated times of launches: they spread as those of real ones do, log-normally, with a slow one now and
//! then.

/// A small generator of pseudo-random numbers (SplitMix64). The same seed gives the same numbers.
pub struct NoiseSource(pub u64);

impl NoiseSource {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number above 0 and at most 1.
    fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// A number of the standard normal distribution (Box and Muller).
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.unit().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }
}

/// How launches spread.
#[derive(Clone, Copy)]
pub struct Spread {
    /// The standard deviation of a launch's logarithm: 0.025 is 2.5 %.
    pub deviation: f64,
    /// The share of launches that take 10 to 60 % longer than they would.
    pub outliers: f64,
}

/// What the tests take: 2.5 %, and one slow launch of 25.
pub const USUAL: Spread = Spread { deviation: 0.025, outliers: 0.04 };

/// The times of `runs` launches with this median, ns.
pub fn launches(source: &mut NoiseSource, runs: usize, median_ns: f64, spread: Spread) -> Vec<u64> {
    let launch = |source: &mut NoiseSource| {
        let usual = median_ns * (spread.deviation * source.normal()).exp();
        let is_slow = source.unit() <= spread.outliers;
        let slow = 1.1 + 0.5 * source.unit();
        (if is_slow { usual * slow } else { usual }) as u64
    };
    (0..runs).map(|_| launch(source)).collect()
}

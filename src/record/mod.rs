//! Recording on the device: the seam to tracefs, the settings it saves and puts back, the page movers.

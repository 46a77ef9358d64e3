package android.os;

/** The kernel's clocks. */
public final class SystemClock {
    private SystemClock() {}

    /** CLOCK_BOOTTIME, in ns. */
    public static native long elapsedRealtimeNanos();

    /** CLOCK_MONOTONIC, in ms. */
    public static long uptimeMillis() { return System.nanoTime() / 1000000; }

    /** The calling thread's CPU time, in µs. */
    public static native long currentThreadTimeMicro();
}

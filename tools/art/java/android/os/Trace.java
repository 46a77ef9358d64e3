package android.os;

/** The markers that an app writes into the kernel's trace; named as Android names them. */
public final class Trace {
    private Trace() {}

    public static native boolean isEnabled();

    public static native void beginSection(String name);

    public static native void endSection();

    public static native void setCounter(String name, long value);

    public static native void beginAsyncSection(String name, int cookie);

    public static native void endAsyncSection(String name, int cookie);
}

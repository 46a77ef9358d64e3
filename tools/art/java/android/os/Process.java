package android.os;

/** What a process does to itself. */
public final class Process {
    private Process() {}

    /** Names the process: its command line, and the name of its main thread. */
    public static native void setArgV0(String name);

    /** As the system's call: 0 in the new process, and its number in the old one. */
    public static native int fork();

    public static native int myPid();
}

package dalvik.system;

import java.io.File;

/** What the zygote does before and after it forks an app. */
public final class ZygoteHooks {
    private static long token;

    private ZygoteHooks() {}

    /** Ends the runtime's own threads: a process with several cannot be forked. */
    public static void preFork() {
        java.lang.Daemons.stop();
        token = nativePreFork();
        while (new File("/proc/self/task").list().length > 1) Thread.yield();
    }

    /** In the child: the runtime becomes an app's. */
    public static void postForkChild(int flags, boolean systemServer, boolean zygote, String instructionSet) {
        nativePostForkChild(token, flags, systemServer, zygote, instructionSet);
    }

    /** In the parent and in the child: the runtime's threads begin again. */
    public static void postForkCommon() {
        java.lang.Daemons.startPostZygoteFork();
        nativePostZygoteFork();
    }

    private static native long nativePreFork();

    private static native void nativePostZygoteFork();

    private static native void nativePostForkSystemServer(int flags);

    private static native void nativePostForkChild(long token, int flags, boolean systemServer, boolean zygote, String instructionSet);

    public static native void startZygoteNoThreadCreation();

    public static native void stopZygoteNoThreadCreation();
}

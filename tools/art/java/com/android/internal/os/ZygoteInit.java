package com.android.internal.os;

import android.app.ActivityThread;
import android.os.Process;
import android.os.Trace;
import android.system.Int32Ref;
import android.system.Os;
import dalvik.system.VMRuntime;
import dalvik.system.ZygoteHooks;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.IOException;

/**
 * The parent of apps. It loads what each of them needs, then waits for a line on its standard input with an app's
 * options, and forks; the child becomes the app. It ends with its child's exit status.
 */
public final class ZygoteInit {
    private static final String[] PRELOADED = {
        "android.app.Activity", "android.app.ActivityThread", "android.app.Application", "android.os.Handler", "android.os.Looper",
        "android.view.Choreographer", "android.view.RenderThread", "android.view.View", "java.util.concurrent.ThreadPoolExecutor",
    };

    private ZygoteInit() {}

    public static void main(String[] none) throws Exception {
        Process.setArgV0("zygote64");
        Trace.beginSection("PreloadClasses");
        for (String name : PRELOADED) Class.forName(name);
        Trace.endSection();
        say("zygote");
        String line = readLine();
        if (line == null) return;
        ZygoteHooks.preFork();
        int child = Process.fork();
        if (child == 0) {
            ZygoteHooks.postForkChild(0, false, false, VMRuntime.getCurrentInstructionSet());
            ZygoteHooks.postForkCommon();
            ActivityThread.main(line.split(" "));
            Runtime.getRuntime().exit(0);
        }
        ZygoteHooks.postForkCommon();
        Int32Ref status = new Int32Ref(0);
        Os.waitpid(child, status, 0);
        Runtime.getRuntime().exit((status.value & 0x7f) != 0 ? 1 : status.value >> 8 & 0xff);
    }

    /** One line of the standard input, read byte by byte: the rest is for the app. */
    public static String readLine() throws IOException {
        FileInputStream in = new FileInputStream(FileDescriptor.in);
        StringBuilder line = new StringBuilder();
        for (int next; (next = in.read()) != '\n'; ) {
            if (next < 0) return line.length() == 0 ? null : line.toString();
            line.append((char) next);
        }
        return line.toString();
    }

    /** One line on the standard output. */
    public static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }
}

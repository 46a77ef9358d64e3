package android.app;

import android.os.Handler;
import android.os.Looper;
import android.os.Process;
import android.os.Trace;
import android.view.Choreographer;
import com.android.internal.os.ZygoteInit;
import dalvik.system.PathClassLoader;
import dalvik.system.VMDebug;
import java.io.FileInputStream;
import java.io.IOException;

/**
 * The main thread of an app: it is bound, starts its activity, and draws its frames. Its options are words NAME=VALUE:
 * package, classes (the Java package of its classes), apk, frames, numbered (whether frames' markers have numbers), trace (a file for the method trace), and
 * what the app itself asks for.
 */
public final class ActivityThread {
    private static String[] options;

    private final Handler handler = new Handler(Looper.getMainLooper());
    private ClassLoader loader;
    private Activity activity;
    private Choreographer choreographer;
    private boolean isProfiling;
    /** Stays open, as that of Android's resources does: simpleperf knows the process of an app by it. */
    private FileInputStream apk;

    private ActivityThread() {}

    /** The value of an option; empty if it is not given. */
    public static String option(String name) {
        for (String option : options) {
            if (option.startsWith(name + "=")) return option.substring(name.length() + 1);
        }
        return "";
    }

    public static String packageName() { return option("package"); }

    public static void main(String[] words) throws Exception {
        options = words;
        Process.setArgV0(packageName());
        Trace.beginSection("ActivityThreadMain");
        Looper.prepareMainLooper();
        ActivityThread thread = new ActivityThread();
        thread.apk = new FileInputStream(option("apk"));
        ZygoteInit.say("attach");
        String answer = ZygoteInit.readLine();
        if (!"bind".equals(answer)) throw new IllegalStateException("system_server says " + answer);
        thread.listen();
        Trace.endSection();
        thread.handler.post(thread::handleBindApplication);
        thread.handler.post(thread::handleLaunchActivity);
        thread.handler.post(thread::handleResumeActivity);
        Looper.loop();
        thread.finish();
    }

    /** Starts the thread that takes what system_server says later. */
    private void listen() {
        Thread binder = new Thread(this::takeRequests, "Binder:" + Process.myPid() + "_1");
        binder.setDaemon(true);
        binder.start();
    }

    private void takeRequests() {
        try {
            for (String request; (request = ZygoteInit.readLine()) != null; ) {
                if (request.equals("profile stop")) stopProfiling();
            }
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }

    private synchronized void stopProfiling() {
        if (isProfiling) VMDebug.stopMethodTracing();
        isProfiling = false;
    }

    private synchronized void startProfiling() {
        if (option("trace").isEmpty()) return;
        VMDebug.startMethodTracing(option("trace"), 64 << 20, 0, false, 0);
        isProfiling = true;
    }

    private Object instance(String name) {
        try {
            return Class.forName(option("classes") + "." + name, true, loader).newInstance();
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }

    private void handleBindApplication() {
        startProfiling();
        Trace.beginSection("bindApplication");
        loader = new PathClassLoader(option("apk"), ClassLoader.getSystemClassLoader());
        ((Application) instance("FeedApp")).onCreate();
        Trace.endSection();
    }

    private void handleLaunchActivity() {
        Trace.beginSection("activityStart");
        performLaunchActivity();
        Trace.endSection();
    }

    private void performLaunchActivity() {
        activity = (Activity) instance("MainActivity");
        Trace.beginSection("performCreate:" + activity.getClass().getName());
        activity.onCreate();
        Trace.endSection();
    }

    private void handleResumeActivity() {
        Trace.beginSection("activityResume");
        activity.onResume();
        Trace.endSection();
        choreographer = new Choreographer(activity, Integer.parseInt(option("frames")), option("numbered").equals("true"));
        choreographer.scheduleFrame();
    }

    /** Prints what was played, as JSON. */
    private void finish() throws InterruptedException {
        long[] ends = choreographer.finish();
        stopProfiling();
        long fully = choreographer.fullyDrawn();
        long late = activity.lateFrame();
        ZygoteInit.say("{\"pid\":" + Process.myPid() + ",\"frames\":" + ends.length + ",\"first_frame_end_ns\":" + ends[0]
            + ",\"fully_drawn_end_ns\":" + (fully < 0 ? "null" : String.valueOf(ends[(int) fully]))
            + ",\"late_frame\":" + (late < 0 ? "null" : String.valueOf(Choreographer.FIRST_FRAME + late)) + "}");
    }
}

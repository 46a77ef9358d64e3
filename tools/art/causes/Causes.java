import android.os.Trace;
import dalvik.system.VMDebug;
import java.io.IOException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * Has the slice `planted` of the main thread take long for one known reason, and prints the reason as JSON: the path by
 * the names of `why --json`, its size in ns by the program's own clock, and texts that an explanation should name.
 * The slice holds 2 ms of work of its own beside the reason.
 *
 * Arguments: CAUSE MILLISECONDS DIRECTORY
 */
public final class Causes {
    private static final int OWN_WORK_MS = 2;
    /** Objects for each ms of a collection of garbage. */
    private static final int KEPT_PER_MS = 2000;
    /** Classes of the core library whose verification takes longest. */
    private static final String[] LARGE_CLASSES = {
        "java.math.BigDecimal", "java.time.LocalDate", "java.util.concurrent.CompletableFuture", "java.util.GregorianCalendar",
        "java.util.stream.DoublePipeline", "java.util.stream.Nodes", "java.util.stream.Collectors", "java.time.LocalDateTime",
        "java.util.concurrent.ConcurrentSkipListMap", "java.time.OffsetDateTime", "java.util.concurrent.locks.StampedLock",
        "java.io.ObjectStreamClass", "java.io.ObjectInputStream", "java.util.TreeMap", "java.net.URI", "java.time.ZonedDateTime",
    };
    private static final Object LOCK = new Object();
    private static Object[] kept;
    private static volatile int sink;
    private static int stepsPerMs;

    private Causes() {}

    /** Computes for this long, interpreted as everything here is. */
    private static void compute(double ms) { sink = burn((int) (ms * stepsPerMs)); }

    static int burn(int steps) {
        int sum = steps;
        for (int i = 0; i < steps; i++) sum = sum * 31 + i;
        return sum;
    }

    private static void calibrate() {
        stepsPerMs = 20000;
        long begin = System.nanoTime();
        compute(10);
        stepsPerMs = (int) (10 * 1e6 * stepsPerMs / (System.nanoTime() - begin));
    }

    /** A reason: what happens before the slice, and what takes the time in it. */
    private interface Cause {
        void prepare() throws Exception;

        void take() throws Exception;
    }

    private static Thread started(String name, Runnable work) {
        Thread thread = new Thread(work, name);
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    private static void await(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Main wants a monitor that another thread holds, which computes meanwhile. */
    private static final class Monitor implements Cause {
        private final CountDownLatch held = new CountDownLatch(1);
        private final double ms;

        Monitor(double ms) { this.ms = ms; }

        public void prepare() {
            started("holder", this::hold);
            Causes.await(held);
        }

        private void hold() {
            synchronized (LOCK) {
                held.countDown();
                compute(ms);
            }
        }

        public void take() {
            synchronized (LOCK) {
                sink++;
            }
        }
    }

    /** Main waits for the last task of a pool with one thread. */
    private static final class PoolQueue implements Cause {
        private static final int TASKS = 4;
        private final ExecutorService pool = Executors.newFixedThreadPool(1);
        private final double ms;

        PoolQueue(double ms) { this.ms = ms; }

        public void prepare() throws Exception { pool.submit(() -> sink++).get(); }

        public void take() throws Exception {
            for (int task = 0; task < TASKS; task++) {
                String name = "task " + task;
                pool.execute(() -> {
                    Trace.beginSection(name);
                    compute(ms / TASKS);
                    Trace.endSection();
                });
            }
            pool.submit(() -> sink++).get();
        }
    }

    /** Another thread stops all threads, and writes the heap into a file. */
    private static final class Stopped implements Cause {
        private final CountDownLatch wanted = new CountDownLatch(1);
        private final String file;
        private volatile boolean hasEnded;

        Stopped(String directory) { file = directory + "/planted.hprof"; }

        public void prepare() {
            started("dumper", () -> {
                Causes.await(wanted);
                try {
                    VMDebug.dumpHprofData(file);
                } catch (IOException e) {
                    throw new IllegalStateException(e);
                }
                hasEnded = true;
            });
        }

        public void take() {
            wanted.countDown();
            while (!hasEnded) compute(0.05);
        }
    }

    private static void keep(double ms) {
        kept = new Object[(int) (ms * KEPT_PER_MS)];
        for (int i = 0; i < kept.length; i++) kept[i] = new Object[] {new byte[16], kept[i / 2]};
    }

    /** Main collects garbage itself. */
    private static final class OwnCollection implements Cause {
        private final double ms;

        OwnCollection(double ms) { this.ms = ms; }

        public void prepare() { keep(ms); }

        public void take() { Runtime.getRuntime().gc(); }
    }

    /** Main wants to collect garbage while another thread does: it waits for the other collection first. */
    private static final class AwaitedCollection implements Cause {
        private final CountDownLatch begun = new CountDownLatch(1);
        private final double ms;

        AwaitedCollection(double ms) { this.ms = ms; }

        public void prepare() {
            keep(ms);
            started("collector", () -> {
                begun.countDown();
                for (int i = 0; i < 3; i++) Runtime.getRuntime().gc();
            });
            Causes.await(begun);
        }

        public void take() { Runtime.getRuntime().gc(); }
    }

    /** Main uses classes for the first time, which the runtime verifies. */
    private static final class Verification implements Cause {
        public void prepare() {}

        public void take() throws ClassNotFoundException {
            for (String name : LARGE_CLASSES) Class.forName(name);
        }
    }

    /** Main computes. */
    private static final class Interpreted implements Cause {
        private final double ms;

        Interpreted(double ms) { this.ms = ms; }

        public void prepare() {}

        public void take() { compute(ms); }
    }

    private static Cause cause(String name, double ms, String directory) {
        switch (name) {
            case "monitor": return new Monitor(ms);
            case "pool_queue": return new PoolQueue(ms);
            case "stopped": return new Stopped(directory);
            case "own_collection": return new OwnCollection(ms);
            case "awaited_collection": return new AwaitedCollection(ms);
            case "verification": return new Verification();
            case "interpreted": return new Interpreted(ms);
            default: throw new IllegalArgumentException(name);
        }
    }

    /** The path of the reason, and texts that an explanation should name. */
    private static String truth(String name) {
        switch (name) {
            case "monitor": return "[\"lock\", \"running\"], \"named\": [\"holder\", \"Causes.burn\", \"Causes.java\"]";
            case "pool_queue": return "[\"lock\", \"running\"], \"named\": [\"pool-1-thread-1\", \"task 0\"]";
            case "stopped": return "[\"lock\", \"running\"], \"named\": [\"dumper\", \"DumpHeap\"]";
            case "own_collection": return "[\"gc\"], \"named\": [\"Explicit concurrent copying GC\"]";
            case "awaited_collection": return "[\"gc\"], \"named\": [\"collector\"]";
            case "verification": return "[\"class_loading\"], \"named\": [\"VerifyClass \"]";
            default: return "[\"running\"], \"named\": []";
        }
    }

    public static void main(String[] words) throws Exception {
        calibrate();
        Cause cause = cause(words[0], Double.parseDouble(words[1]), words[2]);
        cause.prepare();
        Trace.beginSection("planted");
        compute(OWN_WORK_MS);
        long begin = System.nanoTime();
        cause.take();
        long took = System.nanoTime() - begin;
        Trace.endSection();
        System.out.println("{\"path\": " + truth(words[0]) + ", \"ns\": " + took + "}");
        System.out.flush();
        // A main thread that ends gets another name.
        Runtime.getRuntime().halt(0);
    }
}

import dalvik.system.VMDebug;
import java.io.BufferedReader;
import java.io.File;
import java.io.FileReader;
import java.io.PrintWriter;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.TreeMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.json.JSONObject;

/** What programs need of the runtime and its core library: `scripts/art check` runs it, in a directory for its files. */
public final class Check {
    private static final Object LOCK = new Object();
    private static int failures;

    private Check() {}

    private static void same(Object expected, Object actual) {
        if (expected.equals(actual)) return;
        failures++;
        System.out.println("expected " + expected + ", and not " + actual);
    }

    public static void main(String[] arguments) throws Exception {
        String directory = arguments[0];
        texts();
        numbers();
        collections();
        files(directory);
        tracing(directory);
        contention();
        collecting();
        VMDebug.dumpHprofData(directory + "/heap.hprof");
        System.out.println(failures == 0 ? "checked" : failures + " failures");
        // Somebody looks at its stacks now.
        if (arguments.length > 1) Thread.sleep(Long.parseLong(arguments[1]));
        System.exit(failures == 0 ? 0 : 1);
    }

    private static void texts() throws Exception {
        same("3.14|00042|ff|  x|-7", String.format("%.2f|%05d|%x|%3s|%d", Math.PI, 42, 255, "x", -7L));
        same("a_b_c", "a12b3c".replaceAll("[0-9]+", "_"));
        same(Arrays.asList("x", "y", "z"), Arrays.asList("x, y,z".split(", ?")));
        same("ÄÖ", "äö".toUpperCase(Locale.ROOT));
        same("häß", new String("häß".getBytes("UTF-8"), "UTF-8"));
        same("{\"a\":[1,{\"b\":\"c\"}]}", new JSONObject("{\"a\": [1, {\"b\": \"c\"}]}").toString());
        try {
            Integer.parseInt("x");
            same("an exception", "none");
        } catch (NumberFormatException e) {
            same("For input string: \"x\"", e.getMessage());
            same("texts", e.getStackTrace()[e.getStackTrace().length - 2].getMethodName());
        }
    }

    private static void numbers() {
        same(1.5e-7, Double.parseDouble("1.5e-7"));
        same("1.0E10", String.valueOf(1e10));
        same(3L, Math.round(Math.sqrt(9.2)));
        same("2432902008176640000000", IntStream.rangeClosed(1, 20).mapToObj(BigInteger::valueOf).reduce(BigInteger.valueOf(1000), BigInteger::multiply).toString());
        same(new BigInteger("-12345678901234567890"), new BigInteger(new BigInteger("-12345678901234567890").toByteArray()));
        same(new BigDecimal("0.3"), new BigDecimal("0.1").add(new BigDecimal("0.2")));
        same("PT1M30.5S", Duration.ofMillis(90500).toString());
    }

    private static void collections() {
        List<String> words = Arrays.asList("pear", "fig", "apple");
        same("APPLE,PEAR", words.stream().filter(word -> word.length() > 3).map(String::toUpperCase).sorted().collect(Collectors.joining(",")));
        same("{3=1, 4=1, 5=1}", words.stream().collect(Collectors.groupingBy(String::length, TreeMap::new, Collectors.counting())).toString());
    }

    private static void files(String directory) throws Exception {
        File file = new File(directory, "text");
        try (PrintWriter writer = new PrintWriter(file)) {
            writer.println("one");
        }
        try (BufferedReader reader = new BufferedReader(new FileReader(file))) {
            same("one", reader.readLine());
        }
        same(4L, file.length());
        same(true, Arrays.asList(new File(directory).list()).contains("text"));
        same(true, file.delete());
    }

    private static void tracing(String directory) throws Exception {
        VMDebug.startMethodTracing(directory + "/java.trace", 8 << 20, 0, false, 0);
        ExecutorService pool = Executors.newFixedThreadPool(2);
        List<Future<Integer>> sums = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            int start = i;
            sums.add(pool.submit(() -> sum(start)));
        }
        for (int i = 0; i < 4; i++) same(sum(i), sums.get(i).get());
        pool.shutdown();
        VMDebug.stopMethodTracing();
        VMDebug.startMethodTracing(directory + "/sampled.trace", 8 << 20, 0, true, 1000);
        long end = System.nanoTime() + 50000000;
        while (System.nanoTime() < end) sum(1);
        VMDebug.stopMethodTracing();
    }

    private static int sum(int start) {
        int sum = start;
        for (int i = 0; i < 1000; i++) sum = sum * 31 + i;
        return sum;
    }

    private static void contention() throws Exception {
        Thread holder = new Thread(() -> {
            synchronized (LOCK) {
                LOCK.notify();
                sleep(30);
            }
        }, "holder");
        synchronized (LOCK) {
            holder.start();
            LOCK.wait();
        }
        synchronized (LOCK) {
            sum(2);
        }
        Thread waiter = new Thread(() -> {
            synchronized (LOCK) {
                sum(3);
            }
        }, "waiter");
        synchronized (LOCK) {
            waiter.start();
            sleep(30);
        }
        waiter.join();
        holder.join();
    }

    private static void sleep(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private static void collecting() {
        Runtime runtime = Runtime.getRuntime();
        runtime.gc();
        long before = runtime.totalMemory() - runtime.freeMemory();
        byte[] kept = new byte[4 << 20];
        long after = runtime.totalMemory() - runtime.freeMemory();
        same(256L << 20, runtime.maxMemory());
        same(true, kept.length + before <= after + 65536);
        List<byte[]> garbage = new ArrayList<>();
        for (int i = 0; i < 2000; i++) {
            if (i % 50 == 0) garbage.clear();
            garbage.add(new byte[20000]);
        }
    }
}

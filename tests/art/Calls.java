import dalvik.system.VMDebug;

/** Computes, sleeps, allocates and contends at random, in several threads, and prints how often it called `fib`. */
public class Calls {
    static final Object LOCK = new Object();
    static long fibs;
    static volatile Object kept;

    static int fib(int n) {
        return n < 2 ? n : fib(n - 1) + fib(n - 2);
    }

    /** Calls `fib` 177 times. */
    static int compute() {
        return fib(10);
    }

    static void allocate() {
        Object[] list = new Object[500];
        for (int i = 0; i < list.length; i++) {
            list[i] = new byte[i];
        }
        kept = list;
    }

    static void contend() {
        synchronized (LOCK) {
            fibs += 177;
            compute();
        }
    }

    static class Worker extends Thread {
        private final int rounds;
        private long random;

        Worker(String name, long seed, int rounds) {
            super(name);
            this.rounds = rounds;
            random = seed * 2862933555777941757L + 3037000493L;
        }

        @Override
        public void run() {
            try {
                for (int i = 0; i < rounds; i++) {
                    round();
                }
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        }

        void round() throws InterruptedException {
            random = random * 6364136223846793005L + 1442695040888963407L;
            switch ((int) (random >>> 40) & 3) {
                case 0:
                    Thread.sleep(1);
                    break;
                case 1:
                    allocate();
                    break;
                default:
                    contend();
                    break;
            }
        }
    }

    /** SEED THREADS ROUNDS [FILE: where a trace of samples goes]. */
    public static void main(String[] args) throws Exception {
        long seed = Long.parseLong(args[0]);
        int rounds = Integer.parseInt(args[2]);
        if (args.length > 3) {
            VMDebug.startMethodTracing(args[3], 8 << 20, 0, true, 1000);
        }
        Worker[] workers = new Worker[Integer.parseInt(args[1])];
        for (int i = 0; i < workers.length; i++) {
            workers[i] = new Worker("worker-" + i, seed + i + 1, rounds);
            workers[i].start();
        }
        new Worker("", seed, rounds).run();
        for (Worker worker : workers) {
            worker.join();
        }
        if (args.length > 3) {
            VMDebug.stopMethodTracing();
        }
        System.out.println(fibs);
    }
}

package android.os;

/** The messages of a looper, in the order of their times. */
final class MessageQueue {
    private Message first;
    private boolean quits;

    synchronized void enqueueMessage(Message message) {
        Message before = null, after = first;
        while (after != null && after.when <= message.when) {
            before = after;
            after = after.next;
        }
        message.next = after;
        if (before == null) {
            first = message;
        } else {
            before.next = message;
        }
        notify();
    }

    synchronized void quit() {
        quits = true;
        notify();
    }

    /** The next message, when its time has come; null after the end. */
    synchronized Message next() throws InterruptedException {
        while (true) {
            if (first == null) {
                if (quits) return null;
                wait();
                continue;
            }
            long wait = first.when - System.nanoTime();
            if (wait > 0) {
                wait(wait / 1000000, (int) (wait % 1000000));
                continue;
            }
            Message message = first;
            first = message.next;
            return message;
        }
    }
}

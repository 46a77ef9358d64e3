package java.io;

import sun.misc.JavaIOFileDescriptorAccess;
import sun.misc.SharedSecrets;

/**
 * A descriptor of a file. The runtime looks at its fields before it has loaded any native method, so that making the
 * three that every program has may call none.
 */
public final class FileDescriptor {
    public static final long NO_OWNER = 0;
    public static final FileDescriptor in = new FileDescriptor(0);
    public static final FileDescriptor out = new FileDescriptor(1);
    public static final FileDescriptor err = new FileDescriptor(2);

    private int descriptor;
    private long ownerId = NO_OWNER;

    static {
        SharedSecrets.setJavaIOFileDescriptorAccess(new JavaIOFileDescriptorAccess() {
            @Override
            public void set(FileDescriptor file, int number) { file.descriptor = number; }

            @Override
            public int get(FileDescriptor file) { return file.descriptor; }

            @Override
            public void setHandle(FileDescriptor file, long handle) { throw new UnsupportedOperationException(); }

            @Override
            public long getHandle(FileDescriptor file) { throw new UnsupportedOperationException(); }
        });
    }

    public FileDescriptor() { this(-1); }

    private FileDescriptor(int descriptor) { this.descriptor = descriptor; }

    public boolean valid() { return descriptor != -1; }

    public native void sync() throws SyncFailedException;

    public int getInt$() { return descriptor; }

    public void setInt$(int number) { descriptor = number; }

    public long getOwnerId$() { return ownerId; }

    public void setOwnerId$(long owner) { ownerId = owner; }

    public FileDescriptor release$() {
        FileDescriptor released = new FileDescriptor(descriptor);
        released.ownerId = ownerId;
        descriptor = -1;
        ownerId = NO_OWNER;
        return released;
    }

    public boolean isSocket$() { return isSocket(descriptor); }

    private static native boolean isSocket(int number);
}

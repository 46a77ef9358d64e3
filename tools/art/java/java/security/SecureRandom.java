package java.security;

import java.io.FileInputStream;
import java.io.IOException;

/** Random numbers of the kernel. */
public class SecureRandom extends java.util.Random {
    public SecureRandom() { super(0); }

    public SecureRandom(byte[] seed) { super(0); }

    public static byte[] getSeed(int length) {
        byte[] bytes = new byte[length];
        new SecureRandom().nextBytes(bytes);
        return bytes;
    }

    public byte[] generateSeed(int length) { return getSeed(length); }

    @Override
    public void setSeed(long seed) {}

    public void setSeed(byte[] seed) {}

    @Override
    public void nextBytes(byte[] bytes) {
        try (FileInputStream random = new FileInputStream("/dev/urandom")) {
            random.read(bytes);
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }

    @Override
    protected int next(int bits) {
        byte[] bytes = new byte[4];
        nextBytes(bytes);
        int value = (bytes[0] & 0xff) << 24 | (bytes[1] & 0xff) << 16 | (bytes[2] & 0xff) << 8 | bytes[3] & 0xff;
        return value >>> 32 - bits;
    }
}

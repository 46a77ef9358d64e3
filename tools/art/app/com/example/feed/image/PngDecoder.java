package com.example.feed.image;

/** Unpacks the lines of an image: runs of bytes, of which each is the difference from the one before. */
public final class PngDecoder {
    private static final int WIDTH = 512;
    private int random = 1;

    /** As many lines as are wanted; some memory of each is garbage afterwards. */
    public byte[] decode(int lines) {
        byte[] image = new byte[WIDTH * lines];
        for (int line = 0; line < lines; line++) readLine(image, line * WIDTH);
        return image;
    }

    private void readLine(byte[] image, int at) {
        byte[] packed = inflate();
        unfilter(packed, image, at);
    }

    private byte[] inflate() {
        byte[] bytes = new byte[WIDTH];
        for (int i = 0; i < WIDTH; ) {
            random = random * 1103515245 + 12345;
            int run = 1 + (random >>> 16 & 7);
            byte value = (byte) (random >>> 24);
            for (; run > 0 && i < WIDTH; run--) bytes[i++] = value;
        }
        return bytes;
    }

    private static void unfilter(byte[] packed, byte[] image, int at) {
        byte before = 0;
        for (int i = 0; i < WIDTH; i++) {
            before += packed[i];
            image[at + i] = before;
        }
    }
}

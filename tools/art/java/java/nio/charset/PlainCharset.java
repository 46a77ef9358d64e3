package java.nio.charset;

import java.nio.ByteBuffer;
import java.nio.CharBuffer;

/** The charsets that need no tables: US-ASCII, ISO-8859-1 and UTF-8; UTF-16 can be named, and cannot be read. */
public final class PlainCharset extends Charset {
    private static final PlainCharset[] ALL = {
        new PlainCharset("US-ASCII", 0x80, "ASCII"),
        new PlainCharset("ISO-8859-1", 0x100, "ISO8859_1", "latin1"),
        new PlainCharset("UTF-8", 0x110000, "UTF8"),
        new PlainCharset("UTF-16", 0),
        new PlainCharset("UTF-16BE", 0),
        new PlainCharset("UTF-16LE", 0),
    };

    /** The first character that the charset cannot write. */
    private final int limit;

    private PlainCharset(String name, int limit, String... aliases) {
        super(name, aliases);
        this.limit = limit;
    }

    public static Charset named(String name) {
        for (PlainCharset charset : ALL) {
            if (charset.name().equalsIgnoreCase(name)) return charset;
            for (String alias : charset.aliases()) {
                if (alias.equalsIgnoreCase(name)) return charset;
            }
        }
        return null;
    }

    public static String[] names() {
        String[] names = new String[ALL.length];
        for (int i = 0; i < ALL.length; i++) names[i] = ALL[i].name();
        return names;
    }

    @Override
    public boolean contains(Charset other) { return other instanceof PlainCharset && ((PlainCharset) other).limit <= limit; }

    @Override
    public CharsetDecoder newDecoder() {
        if (limit == 0) throw new UnsupportedOperationException(name());
        return limit > 0x100 ? new Utf8Decoder(this) : new ByteDecoder(this, limit);
    }

    @Override
    public CharsetEncoder newEncoder() {
        if (limit == 0) throw new UnsupportedOperationException(name());
        return limit > 0x100 ? new Utf8Encoder(this) : new ByteEncoder(this, limit);
    }

    private static final class ByteDecoder extends CharsetDecoder {
        private final int limit;

        ByteDecoder(Charset charset, int limit) {
            super(charset, 1, 1);
            this.limit = limit;
        }

        @Override
        protected CoderResult decodeLoop(ByteBuffer in, CharBuffer out) {
            while (in.hasRemaining()) {
                int value = in.get(in.position()) & 0xff;
                if (value >= limit) return CoderResult.malformedForLength(1);
                if (!out.hasRemaining()) return CoderResult.OVERFLOW;
                in.get();
                out.put((char) value);
            }
            return CoderResult.UNDERFLOW;
        }
    }

    private static final class ByteEncoder extends CharsetEncoder {
        private final int limit;

        ByteEncoder(Charset charset, int limit) {
            super(charset, 1, 1);
            this.limit = limit;
        }

        @Override
        protected CoderResult encodeLoop(CharBuffer in, ByteBuffer out) {
            while (in.hasRemaining()) {
                char value = in.get(in.position());
                if (value >= limit) return CoderResult.unmappableForLength(1);
                if (!out.hasRemaining()) return CoderResult.OVERFLOW;
                in.get();
                out.put((byte) value);
            }
            return CoderResult.UNDERFLOW;
        }
    }

    private static final class Utf8Decoder extends CharsetDecoder {
        Utf8Decoder(Charset charset) { super(charset, 1, 1); }

        @Override
        protected CoderResult decodeLoop(ByteBuffer in, CharBuffer out) {
            while (in.hasRemaining()) {
                int at = in.position(), first = in.get(at) & 0xff;
                int length = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
                if (length == 0) return CoderResult.malformedForLength(1);
                if (in.remaining() < length) return CoderResult.UNDERFLOW;
                int value = length == 1 ? first : first & (0x7f >> length);
                for (int i = 1; i < length; i++) {
                    int next = in.get(at + i) & 0xff;
                    if ((next & 0xc0) != 0x80) return CoderResult.malformedForLength(i);
                    value = value << 6 | next & 0x3f;
                }
                int chars = Character.charCount(value);
                if (out.remaining() < chars) return CoderResult.OVERFLOW;
                in.position(at + length);
                if (chars == 1) {
                    out.put((char) value);
                } else {
                    out.put(Character.highSurrogate(value)).put(Character.lowSurrogate(value));
                }
            }
            return CoderResult.UNDERFLOW;
        }
    }

    private static final class Utf8Encoder extends CharsetEncoder {
        Utf8Encoder(Charset charset) { super(charset, 1.1f, 3); }

        @Override
        protected CoderResult encodeLoop(CharBuffer in, ByteBuffer out) {
            while (in.hasRemaining()) {
                int at = in.position(), value = in.get(at), chars = 1;
                if (Character.isSurrogate((char) value)) {
                    if (!Character.isHighSurrogate((char) value)) return CoderResult.malformedForLength(1);
                    if (in.remaining() < 2) return CoderResult.UNDERFLOW;
                    char low = in.get(at + 1);
                    if (!Character.isLowSurrogate(low)) return CoderResult.malformedForLength(1);
                    value = Character.toCodePoint((char) value, low);
                    chars = 2;
                }
                int length = value < 0x80 ? 1 : value < 0x800 ? 2 : value < 0x10000 ? 3 : 4;
                if (out.remaining() < length) return CoderResult.OVERFLOW;
                in.position(at + chars);
                if (length == 1) {
                    out.put((byte) value);
                    continue;
                }
                out.put((byte) (0xf00 >> length | value >> 6 * (length - 1)));
                for (int i = length - 2; i >= 0; i--) out.put((byte) (0x80 | value >> 6 * i & 0x3f));
            }
            return CoderResult.UNDERFLOW;
        }
    }
}

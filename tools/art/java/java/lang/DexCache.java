package java.lang;

/** What the runtime has resolved of a dex file; it fills in the fields itself, and knows them by name and type. */
final class DexCache {
    private ClassLoader classLoader;
    private String location;
    private long dexFile;
    private long preResolvedStrings;
    private long resolvedCallSites;
    private long resolvedFields;
    private long resolvedMethodTypes;
    private long resolvedMethods;
    private long resolvedTypes;
    private long strings;
    private int numPreResolvedStrings;
    private int numResolvedCallSites;
    private int numResolvedFields;
    private int numResolvedMethodTypes;
    private int numResolvedMethods;
    private int numResolvedTypes;
    private int numStrings;

    private DexCache() {}
}

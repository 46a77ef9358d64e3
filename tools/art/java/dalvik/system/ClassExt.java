package dalvik.system;

/** What the runtime keeps for few classes; it fills in the fields itself, and knows them by name and type. */
public final class ClassExt {
    private Object instanceJfieldIDs;
    private Object jmethodIDs;
    private Class<?> obsoleteClass;
    private Object[] obsoleteDexCaches;
    private Object obsoleteMethods;
    private Object originalDexFile;
    private Object staticJfieldIDs;
    private Object verifyError;
    private long preRedefineDexFilePtr;
    private int preRedefineClassDefIndex;

    private ClassExt() {}
}

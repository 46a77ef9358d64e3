import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassVisitor;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.Handle;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;
import org.objectweb.asm.Type;
import org.objectweb.asm.commons.GeneratorAdapter;
import org.objectweb.asm.commons.Method;

/**
 * Gives each lambda expression and method reference in a directory of class files a class of its own, as the compiler
 * for phones does: the runtime has none that would make them while a program runs.
 */
public final class Desugar {
    private static final int API = Opcodes.ASM9;

    public static void main(String[] directories) throws IOException {
        for (String directory : directories) {
            List<Path> files;
            try (Stream<Path> found = Files.walk(Paths.get(directory))) {
                files = found.filter(file -> file.toString().endsWith(".class")).collect(Collectors.toList());
            }
            for (Path file : files) new Desugar(Paths.get(directory)).desugar(file);
        }
    }

    private final Path directory;
    /** The methods of the class that no other class may call, as name and descriptor. */
    private final Set<String> privateMethods = new HashSet<>();
    private final List<Accessor> accessors = new ArrayList<>();
    private String owner;
    private boolean isInterface;
    private int lambdas;

    private Desugar(Path directory) { this.directory = directory; }

    private static final class Accessor {
        final String name;
        final Handle target;
        final Type[] arguments;

        Accessor(String name, Handle target, Type[] arguments) {
            this.name = name;
            this.target = target;
            this.arguments = arguments;
        }
    }

    private void desugar(Path file) throws IOException {
        ClassReader reader = new ClassReader(Files.readAllBytes(file));
        owner = reader.getClassName();
        isInterface = (reader.getAccess() & Opcodes.ACC_INTERFACE) != 0;
        reader.accept(new ClassVisitor(API) {
            @Override
            public MethodVisitor visitMethod(int access, String name, String type, String signature, String[] thrown) {
                if ((access & Opcodes.ACC_PRIVATE) != 0) privateMethods.add(name + type);
                return null;
            }
        }, ClassReader.SKIP_CODE);
        ClassWriter writer = new ClassWriter(ClassWriter.COMPUTE_MAXS);
        reader.accept(new Rewriter(writer), 0);
        if (lambdas > 0) Files.write(file, writer.toByteArray());
    }

    private final class Rewriter extends ClassVisitor {
        Rewriter(ClassVisitor next) { super(API, next); }

        @Override
        public MethodVisitor visitMethod(int access, String name, String type, String signature, String[] thrown) {
            if (name.startsWith("lambda$")) {
                access &= ~Opcodes.ACC_PRIVATE;
                if (isInterface) {
                    // Static, so that the classes that implement the interface have as many methods as the runtime expects.
                    if ((access & Opcodes.ACC_STATIC) == 0) type = withReceiver(type);
                    access |= Opcodes.ACC_PUBLIC | Opcodes.ACC_STATIC;
                }
            }
            return new MethodVisitor(API, super.visitMethod(access, name, type, signature, thrown)) {
                @Override
                public void visitInvokeDynamicInsn(String method, String factory, Handle bootstrap, Object... arguments) {
                    if (!bootstrap.getOwner().equals("java/lang/invoke/LambdaMetafactory")) {
                        super.visitInvokeDynamicInsn(method, factory, bootstrap, arguments);
                        return;
                    }
                    String made = make(method, factory, arguments);
                    super.visitMethodInsn(Opcodes.INVOKESTATIC, made, "create", factory, false);
                }
            };
        }

        @Override
        public void visitEnd() {
            for (Accessor accessor : accessors) {
                Handle target = accessor.target;
                Type result = returned(target);
                Method method = new Method(accessor.name, result, accessor.arguments);
                int access = Opcodes.ACC_STATIC | Opcodes.ACC_SYNTHETIC | (isInterface ? Opcodes.ACC_PUBLIC : 0);
                GeneratorAdapter code = new GeneratorAdapter(access, method, null, null, cv);
                code.loadArgs();
                invoke(code, target);
                code.returnValue();
                code.endMethod();
            }
            super.visitEnd();
        }
    }

    private String withReceiver(String type) { return "(L" + owner + ";" + type.substring(1); }

    /** What a call of the handle takes, its object first. */
    private static Type[] taken(Handle handle) {
        Type[] declared = Type.getArgumentTypes(handle.getDesc());
        if (handle.getTag() == Opcodes.H_INVOKESTATIC || handle.getTag() == Opcodes.H_NEWINVOKESPECIAL) return declared;
        Type[] all = new Type[declared.length + 1];
        all[0] = Type.getObjectType(handle.getOwner());
        System.arraycopy(declared, 0, all, 1, declared.length);
        return all;
    }

    private static Type returned(Handle handle) {
        if (handle.getTag() == Opcodes.H_NEWINVOKESPECIAL) return Type.getObjectType(handle.getOwner());
        return Type.getReturnType(handle.getDesc());
    }

    private static void invoke(GeneratorAdapter code, Handle handle) {
        int call;
        switch (handle.getTag()) {
            case Opcodes.H_INVOKESTATIC: call = Opcodes.INVOKESTATIC; break;
            case Opcodes.H_INVOKEINTERFACE: call = Opcodes.INVOKEINTERFACE; break;
            case Opcodes.H_INVOKEVIRTUAL: call = Opcodes.INVOKEVIRTUAL; break;
            default: call = Opcodes.INVOKESPECIAL; break;
        }
        code.visitMethodInsn(call, handle.getOwner(), handle.getName(), handle.getDesc(), handle.isInterface());
    }

    /** Makes the class of one lambda expression; its name. */
    private String make(String method, String factory, Object[] arguments) {
        String name = owner + "$$ExternalSyntheticLambda" + lambdas++;
        Type type = Type.getObjectType(name);
        Type[] captured = Type.getArgumentTypes(factory);
        Set<String> interfaces = new LinkedHashSet<>();
        interfaces.add(Type.getReturnType(factory).getInternalName());
        List<String> signatures = new ArrayList<>();
        signatures.add(((Type) arguments[0]).getDescriptor());
        more(arguments, interfaces, signatures);
        ClassWriter writer = new ClassWriter(ClassWriter.COMPUTE_MAXS);
        writer.visit(Opcodes.V1_8, Opcodes.ACC_FINAL | Opcodes.ACC_SYNTHETIC | Opcodes.ACC_PUBLIC, name, null, "java/lang/Object", interfaces.toArray(new String[0]));
        for (int i = 0; i < captured.length; i++) {
            writer.visitField(Opcodes.ACC_FINAL | Opcodes.ACC_PUBLIC, "f$" + i, captured[i].getDescriptor(), null, null).visitEnd();
        }
        constructor(writer, type, captured);
        GeneratorAdapter create = new GeneratorAdapter(Opcodes.ACC_PUBLIC | Opcodes.ACC_STATIC, new Method("create", factory), null, null, writer);
        create.newInstance(type);
        create.dup();
        create.loadArgs();
        create.invokeConstructor(type, new Method("<init>", Type.VOID_TYPE, captured));
        create.returnValue();
        create.endMethod();
        Handle target = reachable((Handle) arguments[1], captured);
        for (String signature : signatures) body(writer, type, captured, new Method(method, signature), (Type) arguments[2], target);
        writer.visitEnd();
        try {
            Files.write(directory.resolve(name + ".class"), writer.toByteArray());
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
        return name;
    }

    /** The interfaces and bridges that a factory of the longer form names. */
    private static void more(Object[] arguments, Set<String> interfaces, List<String> signatures) {
        if (arguments.length < 4) return;
        int flags = (Integer) arguments[3], at = 4;
        if ((flags & 1) != 0) interfaces.add("java/io/Serializable");
        if ((flags & 2) != 0) {
            for (int count = (Integer) arguments[at++]; count > 0; count--) interfaces.add(((Type) arguments[at++]).getInternalName());
        }
        if ((flags & 4) != 0) {
            for (int count = (Integer) arguments[at++]; count > 0; count--) signatures.add(((Type) arguments[at++]).getDescriptor());
        }
    }

    private static void constructor(ClassWriter writer, Type type, Type[] captured) {
        GeneratorAdapter code = new GeneratorAdapter(Opcodes.ACC_PUBLIC, new Method("<init>", Type.VOID_TYPE, captured), null, null, writer);
        code.loadThis();
        code.invokeConstructor(Type.getObjectType("java/lang/Object"), new Method("<init>", "()V"));
        for (int i = 0; i < captured.length; i++) {
            code.loadThis();
            code.loadArg(i);
            code.putField(type, "f$" + i, captured[i]);
        }
        code.returnValue();
        code.endMethod();
    }

    /** A handle that the new class may call: itself, or a method of the old class that calls it. */
    private Handle reachable(Handle target, Type[] captured) {
        boolean hidden = target.getOwner().equals(owner) && privateMethods.contains(target.getName() + target.getDesc());
        boolean isLambda = target.getOwner().equals(owner) && target.getName().startsWith("lambda$");
        if (isLambda) {
            // It is no longer private.
            boolean isStatic = target.getTag() == Opcodes.H_INVOKESTATIC;
            String type = isInterface && !isStatic ? withReceiver(target.getDesc()) : target.getDesc();
            int tag = isInterface || isStatic ? Opcodes.H_INVOKESTATIC : Opcodes.H_INVOKEVIRTUAL;
            return new Handle(tag, owner, target.getName(), type, isInterface);
        }
        boolean isClone = target.getName().equals("clone") && target.getOwner().startsWith("[");
        if (target.getTag() == Opcodes.H_NEWINVOKESPECIAL ? !hidden : !hidden && target.getTag() != Opcodes.H_INVOKESPECIAL || isClone) return target;
        Type[] arguments = taken(target);
        if (target.getTag() == Opcodes.H_INVOKESPECIAL) arguments[0] = Type.getObjectType(owner);
        Accessor accessor = new Accessor("access$lambda$" + accessors.size(), target, arguments);
        if (target.getTag() == Opcodes.H_NEWINVOKESPECIAL) throw new IllegalStateException("a reference to a private constructor: " + target);
        accessors.add(accessor);
        return new Handle(Opcodes.H_INVOKESTATIC, owner, accessor.name, Type.getMethodDescriptor(returned(target), arguments), isInterface);
    }

    private static void body(ClassWriter writer, Type type, Type[] captured, Method method, Type instantiated, Handle target) {
        GeneratorAdapter code = new GeneratorAdapter(Opcodes.ACC_PUBLIC, method, null, null, writer);
        Type[] wanted = taken(target), given = method.getArgumentTypes(), known = instantiated.getArgumentTypes();
        if (target.getTag() == Opcodes.H_NEWINVOKESPECIAL) {
            code.newInstance(Type.getObjectType(target.getOwner()));
            code.dup();
        }
        for (int i = 0; i < wanted.length; i++) {
            if (i < captured.length) {
                code.loadThis();
                code.getField(type, "f$" + i, captured[i]);
                convert(code, captured[i], wanted[i]);
            } else {
                code.loadArg(i - captured.length);
                convert(code, given[i - captured.length], known[i - captured.length]);
                convert(code, known[i - captured.length], wanted[i]);
            }
        }
        invoke(code, target);
        convert(code, returned(target), method.getReturnType());
        code.returnValue();
        code.endMethod();
    }

    private static boolean isPrimitive(Type type) { return type.getSort() < Type.ARRAY; }

    private static void convert(GeneratorAdapter code, Type from, Type to) {
        if (from.equals(to)) return;
        if (to == Type.VOID_TYPE) {
            if (from.getSize() == 2) code.pop2(); else code.pop();
        } else if (isPrimitive(from) && isPrimitive(to)) {
            code.cast(from, to);
        } else if (isPrimitive(from)) {
            code.valueOf(from);
        } else if (isPrimitive(to)) {
            Type exact = unboxed(from);
            code.unbox(exact == null ? to : exact);
            if (exact != null && !exact.equals(to)) code.cast(exact, to);
        } else if (!to.getInternalName().equals("java/lang/Object")) {
            code.checkCast(to);
        }
    }

    /** What a box of this type holds; null if it is none. */
    private static Type unboxed(Type box) {
        switch (box.getInternalName()) {
            case "java/lang/Boolean": return Type.BOOLEAN_TYPE;
            case "java/lang/Byte": return Type.BYTE_TYPE;
            case "java/lang/Character": return Type.CHAR_TYPE;
            case "java/lang/Short": return Type.SHORT_TYPE;
            case "java/lang/Integer": return Type.INT_TYPE;
            case "java/lang/Long": return Type.LONG_TYPE;
            case "java/lang/Float": return Type.FLOAT_TYPE;
            case "java/lang/Double": return Type.DOUBLE_TYPE;
            default: return null;
        }
    }
}

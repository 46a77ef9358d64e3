package com.example.feed.di;

import java.util.Map;

/** Makes one object, once. */
final class Provider {
    private final String name;
    private final Class<?> type;

    Provider(String name, Class<?> type) {
        this.name = name;
        this.type = type;
    }

    Object get(Map<String, Object> made) {
        Object object = made.get(name);
        if (object != null) return object;
        try {
            object = type.getConstructor().newInstance();
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
        made.put(name, object);
        return object;
    }
}

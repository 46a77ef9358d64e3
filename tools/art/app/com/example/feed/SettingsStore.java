package com.example.feed;

import android.app.ActivityThread;
import java.io.FileInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import org.json.JSONArray;
import org.json.JSONException;
import org.json.JSONObject;

/** The settings: a file of JSON, which the first activity reads on the main thread. */
final class SettingsStore {
    private final Map<String, Setting> settings = new HashMap<>();

    /** One setting, as the file has it. */
    private static final class Setting {
        final String group;
        final int weight;
        final boolean isOn;

        Setting(JSONObject entry) throws JSONException {
            group = entry.getString("group");
            weight = entry.getInt("weight");
            isOn = entry.getBoolean("on");
        }
    }

    void load() {
        try {
            parse(readFile(ActivityThread.option("settings")));
        } catch (IOException | JSONException e) {
            throw new IllegalStateException(e);
        }
    }

    /** The text of the file, to its last brace: what fills its blocks behind that is no text. */
    private static String readFile(String path) throws IOException {
        StringBuilder text = new StringBuilder();
        try (FileInputStream in = new FileInputStream(path)) {
            byte[] block = new byte[64 << 10];
            for (int length; (length = in.read(block)) > 0; ) text.append(new String(block, 0, length, StandardCharsets.US_ASCII));
        }
        return text.substring(0, text.lastIndexOf("}") + 1);
    }

    private void parse(String text) throws JSONException {
        JSONArray entries = new JSONObject(text).getJSONArray("settings");
        for (int i = 0; i < entries.length(); i++) {
            JSONObject entry = entries.getJSONObject(i);
            settings.put(entry.getString("name"), new Setting(entry));
        }
    }

    int size() { return settings.size(); }
}

// Runs after inferno's script, and replaces its labels.
// The label of a frame: as much of package.Class.method as fits, cut from the package's end.
function label_of(name, room) {
    var parts = name.split(".");
    var forms = [name, parts.slice(-2).join("."), parts[parts.length - 1]];
    for (var i = 0; i < forms.length; i++)
        if (forms[i].length <= room) return forms[i];
    return room < 3 ? "" : forms[2].substring(0, room - 1) + "\u2026";
}
function update_text_for_elements(elements) {
    var total = parseFloat(frames.attributes.width.value);
    var character = known_font_width || fontsize * fontwidth;
    var texts = [];
    for (var i = 0; i < elements.length; i++) {
        var rect = find_child(elements[i], "rect").attributes;
        var name = find_child(elements[i], "title").textContent.replace(/ \([^(]*\)$/, "");
        var width = parseFloat(rect.width.value) * total / 100 - 6;
        var x = format_percent(parseFloat(rect.x.value) + 300 / total);
        texts.push([x, label_of(name, Math.floor(width / character))]);
    }
    for (var i = 0; i < elements.length; i++) {
        var text = find_child(elements[i], "text");
        text.attributes.x.value = texts[i][0];
        text.textContent = texts[i][1];
    }
}
// The picture opens at the threads that run; a click on the frame above shows those that only wait.
window.addEventListener("load", function () {
    if (!opens_at || get_params().x) return;
    // Behind inferno's own first drawing.
    setTimeout(function () {
        setTimeout(function () {
            for (var i = 0; i < frames.children.length; i++)
                if (g_to_text(frames.children[i]).indexOf(opens_at + " (") == 0)
                    return zoom(frames.children[i]);
        }, 0);
    }, 0);
});

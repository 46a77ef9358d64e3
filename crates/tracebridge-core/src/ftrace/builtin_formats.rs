//! The formats of three entries of the kernel's own, for systems where the files that describe them may not
//! be read. Their numbers and fields are the same in every kernel since Linux 2.6.31
//! (`kernel/trace/trace_entries.h`; the arguments that Linux 6.13 appends to `function` are left out).

/// The formats of `function`, `print` and `bprint` in the kernel's notation, with their names. `long_size` is
/// the size of the kernel's `long`, bytes.
pub fn builtin_formats(long_size: u32) -> [(&'static str, String); 3] {
    let second = 8 + long_size;
    let third = second + long_size;
    let long = |name: &str, offset: u32| {
        format!("\tfield:unsigned long {name};\toffset:{offset};\tsize:{long_size};\tsigned:0;\n")
    };
    let ip = long("ip", 8);
    let function = [ip.clone(), long("parent_ip", second)].concat();
    let print = format!("{ip}\tfield:char buf[];\toffset:{second};\tsize:0;\tsigned:0;\n");
    let bprint = format!(
        "{ip}\tfield:const char * fmt;\toffset:{second};\tsize:{long_size};\tsigned:0;\n\
         \tfield:u32 buf[];\toffset:{third};\tsize:0;\tsigned:0;\n"
    );
    let function_text = r#"" %ps <-- %ps", (void *)REC->ip, (void *)REC->parent_ip"#;
    [
        ("function", format(1, "function", &function, function_text)),
        ("print", format(5, "print", &print, r#""%ps: %s", (void *)REC->ip, REC->buf"#)),
        ("bprint", format(6, "bprint", &bprint, r#""%ps: %s", (void *)REC->ip, REC->fmt"#)),
    ]
}

fn format(id: u16, name: &str, fields: &str, print_fmt: &str) -> String {
    format!(
        "name: {name}\nID: {id}\nformat:\n\
         \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
         \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
         \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
         \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
         {fields}\nprint fmt: {print_fmt}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ftrace::EventFormat;

    #[test]
    fn the_built_in_formats_can_be_read() {
        for (long_size, offset) in [(4, 12), (8, 16)] {
            let formats = builtin_formats(long_size);
            for ((name, text), (id, field)) in formats.iter().zip([(1, "parent_ip"), (5, "buf"), (6, "fmt")])
            {
                let format = EventFormat::parse("ftrace", text).unwrap();
                assert_eq!((format.id, format.kind.name.as_str()), (id, *name));
                let found = format.kind.fields.iter().find(|f| f.name == field).unwrap();
                assert_eq!(found.offset, offset, "{name} with longs of {long_size} bytes");
            }
        }
    }
}

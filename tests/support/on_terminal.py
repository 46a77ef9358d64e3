"""Runs a command with its standard output on a terminal of a given width, and prints what it prints there as it
comes. With --stderr its standard error is on the terminal instead.

usage: on_terminal.py [--stderr] COLUMNS COMMAND [ARGUMENT...]
"""
import fcntl
import os
import pty
import struct
import sys
import termios

words = sys.argv[1:]
descriptor = 1
if words[0] == "--stderr":
    words.pop(0)
    descriptor = 2
columns = int(words.pop(0))
ours, theirs = pty.openpty()
fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
child = os.fork()
if child == 0:
    os.close(ours)
    os.dup2(theirs, descriptor)
    os.execvp(words[0], words)
os.close(theirs)
rest = b""
while True:
    # Linux reports the end of the other side as an error.
    try:
        more = os.read(ours, 65536)
    except OSError:
        break
    if not more:
        break
    # The terminal makes two bytes of each line feed. They may come in two pieces.
    printed = rest + more
    rest = b"\r" if printed.endswith(b"\r") else b""
    printed = printed[: len(printed) - len(rest)].replace(b"\r\n", b"\n")
    while printed:
        printed = printed[os.write(1, printed) :]
os.write(1, rest)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

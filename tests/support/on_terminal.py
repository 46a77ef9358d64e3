"""Runs a command with its standard output on a terminal of a given width, and prints what it printed.

usage: on_terminal.py COLUMNS COMMAND [ARGUMENT...]
"""
import fcntl
import os
import pty
import struct
import sys
import termios

ours, theirs = pty.openpty()
fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, int(sys.argv[1]), 0, 0))
child = os.fork()
if child == 0:
    os.close(ours)
    os.dup2(theirs, 1)
    os.execvp(sys.argv[2], sys.argv[2:])
os.close(theirs)
printed = b""
while True:
    # Linux reports the end of the other side as an error.
    try:
        more = os.read(ours, 65536)
    except OSError:
        break
    if not more:
        break
    printed += more
sys.stdout.buffer.write(printed.replace(b"\r\n", b"\n"))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

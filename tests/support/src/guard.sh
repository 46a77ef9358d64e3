# Tidies up after a test run that has ended, in whatever way: a shell runs this with a pipe as its standard input that
# only the run can write to. The arguments are a word NAME=VALUE of the environment of every process of the run, and
# the run's directory.
#
# The pipe brings lines of a word, a tab, and the word's argument; no path of a run has a tab.
#     restore PROGRAM DIRECTORY   the settings that a killed recorder has saved in DIRECTORY are put back
#     settings FILE               the values that the file holds are put back; without a FILE none are
#     rmdir DIRECTORY             a trace instance is removed
#     umount DIRECTORY            what is mounted there is unmounted
# At the end of the pipe the processes of the run are killed, the lines are carried out in this order of words, what
# else is mounted in the run's directory is unmounted, and the directory is removed.
trap '' HUP INT QUIT TERM
set -f
# The end of this shell closes descriptor 3, which tells those who wait for it.
exec 3>&1 >/dev/null 2>&1
restores='' settings='' umounts='' rmdirs=''
tab=$(printf '\t') newline='
'
while IFS= read -r line; do
    case $line in
        restore*) restores=$restores${line#*"$tab"}$newline ;;
        settings*) settings=${line#*"$tab"} ;;
        umount*) umounts=$umounts${line#*"$tab"}$newline ;;
        rmdir*) rmdirs=$rmdirs${line#*"$tab"}$newline ;;
    esac
done

# Lists the environments that have this word.
environments_with() {
    set +f
    grep -lzxF -- "$1" /proc/[0-9]*/environ
    set -f
}

# A process may start another one between two looks.
looks=0
while [ "$looks" -lt 100 ]; do
    looks=$((looks + 1))
    found=$(environments_with "$1")
    [ -n "$found" ] || break
    for file in $found; do
        pid=${file#/proc/}
        kill -KILL "${pid%/environ}"
    done
    [ "$looks" -lt 3 ] || sleep 0.1
done
# A program of this run may have a guard of its own, which needs its files until it is done.
looks=0
while [ "$looks" -lt 300 ] && [ -n "$(environments_with "TRACEBRIDGE_TEST_GUARD_IN=${1#*=}")" ]; do
    looks=$((looks + 1))
    sleep 0.1
done

IFS=$newline
for line in $restores; do
    [ ! -d "${line#*"$tab"}" ] || timeout -k 1 20 "${line%%"$tab"*}" restore --state-dir "${line#*"$tab"}"
done
# Three lines for each setting: its file, the first line of what that shows, and what has to be written for it to show
# that. Several files give a shell, which reads byte by byte, one byte only.
# shellcheck disable=SC2016
differ='
    NR % 3 == 1 { file = $0 }
    NR % 3 == 2 { shown = $0 }
    NR % 3 == 0 {
        now = ""
        getline now <file
        close(file)
        if (now != shown) print file "\n" $0
    }'
if [ -n "$settings" ]; then
    awk "$differ" "$settings" | while IFS= read -r file && IFS= read -r value; do printf %s "$value" >"$file"; done
fi
for line in $rmdirs; do
    # The last process that has it open may not have gone yet.
    looks=0
    while [ -d "$line" ] && ! rmdir "$line" && [ "$looks" -lt 20 ]; do
        looks=$((looks + 1))
        sleep 0.1
    done
done
for line in $umounts; do umount -l "$line"; done
while IFS=' ' read -r _ place _; do
    case $place in
        "$2"/*) umount -l "$place" ;;
    esac
done </proc/self/mounts
rm -rf --one-file-system -- "$2"

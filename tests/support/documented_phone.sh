#!/bin/sh
# Stands in for the device's binary where the commands of the pages are run: it records nothing, and leaves recordings
# that are there. A launch gets those of the version of the app that is installed, one after another.
here=${0%/*}
case ${0##*/}:$1 in
    atrace:* | *:atrace) exec cat "$here/atrace.txt" ;;
    *:--version) echo "tracebridge 0.1.0"; exit ;;
    *:restore) echo "nothing to put back"; exit ;;
    *:doctor) echo "can record"; exit ;;
    *:list) echo "sched"; exit ;;
    *:record | *:dump | *:launch) command=$1 ;;
    *) exit 0 ;;
esac
output='' has_methods=1 version=a
[ ! -e "$here/other" ] || version=b
for word; do
    case $before:$word in
        -o:*) output=$word ;;
        *:--no-profile) has_methods='' ;;
        *:*.beta) version=b ;;
    esac
    before=$word
done
start=
recording=$here/recorded
if [ "$command" = launch ]; then
    kind=launches trace=null
    [ -z "$has_methods" ] || kind=methods
    read -r number 2>/dev/null <"$here/$kind-$version/next" || number=1
    [ -e "$here/$kind-$version/$number.dat" ] || number=1
    echo $((number + 1)) >"$here/$kind-$version/next"
    recording=$here/$kind-$version/$number
    if [ -n "$has_methods" ]; then
        cp "$recording.trace" "${output%.*}.trace"
        trace="{\"path\":\"${output%.*}.trace\",\"bytes\":1}"
    fi
    start=",\"app_start\":{\"times\":[\"TotalTime: 400\"],\"method_trace\":$trace,\"tracer_refused\":null}"
fi
cp "$recording.dat" "$output"
echo "{\"streaming\":true,\"seconds\":1.0,\"clock\":\"boot\",\"ended_by\":\"time\",\"cpus\":[{\"cpu\":0,\"events\":12}]$start}"

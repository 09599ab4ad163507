#!/bin/sh
# Runs a command while it holds one of the two locks in a directory, and waits until one is free. hack/test.sh limits with it how many packages
# run clusters at the same time.
set -eu
[ $# -gt 1 ] || { echo "usage: hack/slot.sh DIRECTORY COMMAND..." >&2; exit 2; }
dir=$1 busy=200
shift
while :; do
	for slot in 1 2; do
		status=0
		# The command's processes do not inherit the lock (--close): one that outlives the command must not keep it.
		flock --nonblock --close --conflict-exit-code "$busy" "$dir/$slot" "$@" || status=$?
		[ "$status" = "$busy" ] || exit "$status"
	done
	sleep 1
done

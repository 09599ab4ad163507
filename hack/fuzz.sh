#!/bin/sh
# Runs every fuzz test of the module, one after the other, for the given time each.
set -eu
time=${1:-30s}
grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u | while read -r dir; do
	grep -ho '^func Fuzz[A-Za-z0-9_]*' "$dir"/*_test.go | sed 's/^func //' | while read -r name; do
		echo "fuzz $dir $name"
		go test -run '^$' -fuzz "^$name\$" -fuzztime "$time" -fuzzminimizetime 5s "./$dir"
	done
done

#!/bin/sh
# Runs all tests of the module: the packages that are named, ATONCE at a time, and beside them the others, two at a time. The named ones run
# whole clusters: more of them at once make the kernel slow to end namespaces. The others compile, or wait, and use what processor time is left.
set -eu
[ $# -gt 1 ] || { echo "usage: hack/test.sh ATONCE PACKAGE..." >&2; exit 2; }
atonce=$1
shift
export CGO_ENABLED=0
timeout=20m
[ "${CONTIV_TEST:-}" != all ] || timeout=3h
named=$(go list "$@")
others=$(go list ./... | grep -vxF "$named")
# A shell lets what runs in the background ignore an interrupt, which is for both.
# shellcheck disable=SC2086
env --default-signal=INT go test -vet=off -p "$atonce" -timeout "$timeout" $named &
first=$!
status=0
# shellcheck disable=SC2086
go test -vet=off -p 2 -timeout "$timeout" $others || status=1
wait "$first" || status=1
exit "$status"

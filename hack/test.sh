#!/bin/sh
# Runs all tests of the module: the packages that are named one after the other, and beside them all others, two at a time. The named ones run
# several clusters at a time each, which is what two processors carry; the others compile, or wait.
set -eu
[ $# -gt 0 ] || { echo "usage: hack/test.sh PACKAGE..." >&2; exit 2; }
export CGO_ENABLED=0
timeout=20m
[ "${CONTIV_TEST:-}" != all ] || timeout=3h
# Without paths, what one checkout has compiled serves the next one. Without symbols, the linker takes half the time. Vet is part of make lint.
flags="-trimpath -ldflags=-s -vet=off -timeout $timeout"
named=$(go list "$@")
others=$(go list ./... | grep -vxF "$named")
# Two commands that compile the same packages at the same time do all of it twice: minutes, where nothing is compiled yet.
# go test, below, reports what does not compile.
# shellcheck disable=SC2086
go list -trimpath -export -deps -test $named >/dev/null 2>&1 || true
# A shell lets what runs in the background ignore an interrupt, which is for both. The named packages run in any case: Go does not see that VPP
# or the kernel is another one than at the last run.
# shellcheck disable=SC2016,SC2086
env --default-signal=INT sh -c 'go run -trimpath ./test/testbed/prepare && exec go test "$@"' sh $flags -count=1 -p 1 $named &
first=$!
status=0
# shellcheck disable=SC2086
go test $flags -p 2 $others || status=1
wait "$first" || status=1
exit "$status"

#!/bin/sh
# Runs all tests of the module: the named packages, and in parallel all other packages, two at a time. Each named package runs several clusters
# at the same time, so few of them run at once (hack/slot.sh): two; with VPP, one while the other packages run. The others mostly compile or wait.
set -eu
[ $# -gt 0 ] || { echo "usage: hack/test.sh PACKAGE..." >&2; exit 2; }
export CGO_ENABLED=0
timeout=20m
[ "${CONTIV_TEST:-}" != all ] || timeout=3h
# With -trimpath, a checkout can use the compiled packages of another one. Without symbols, the linker takes half the time. Vet is part of
# make lint.
flags="-trimpath -ldflags=-s -vet=off -timeout $timeout"
named=$(go list "$@")
others=$(go list ./... | grep -vxF "$named")
# Two commands that compile the same packages at the same time do the work twice, which takes minutes with an empty cache. So compile first;
# go test below reports compile errors.
# shellcheck disable=SC2086
go list -trimpath -export -deps -test $named >/dev/null 2>&1 || true
slots=$(mktemp -d)
trap 'rm -rf "$slots"' EXIT
trap 'exit 130' INT
# With VPP, the other packages need the second slot until they end.
! command -v "${VPP_PREFIX:+$VPP_PREFIX/bin/}vpp" >/dev/null || { exec 9>"$slots/2" && flock 9; }
# A background command of a shell ignores interrupts; here an interrupt must stop both commands. -count=1 always runs the named packages,
# because Go does not detect that VPP or the kernel has changed since the last run.
# shellcheck disable=SC2016,SC2086
env --default-signal=INT sh -c 'go run -trimpath ./test/testbed/prepare && exec go test "$@"' sh $flags -exec "$PWD/hack/slot.sh $slots" -count=1 -p 2 $named 9>&- &
first=$!
status=0
# shellcheck disable=SC2086
go test $flags -p 2 $others 9>&- || status=1
exec 9>&-
wait "$first" || status=1
exit "$status"

#!/bin/sh
# Regenerates ../services.json.gz with the code of kube-proxy. The go.mod of k8s.io/kubernetes replaces its staging modules by relative
# paths, and Go ignores the replacements of a dependency. So this script writes a go.mod that replaces them by published versions.
set -eu
version=${1:-v1.36.3}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
GOFLAGS=-mod=mod go mod download "k8s.io/kubernetes@$version"
up=$(go env GOMODCACHE)/k8s.io/kubernetes@$version
{
	echo "module oracle.invalid/kubeproxy"
	grep -E '^(go|godebug) ' "$up/go.mod"
	echo "require k8s.io/kubernetes $version"
	awk '/^require \(/{p=1} p{print} /^\)/{p=0}' "$up/go.mod"
	echo "replace ("
	awk -v v="v0.${version#v1.}" '/=> \.\/staging/{print "\t" $1 " => " $1 " " v}' "$up/go.mod"
	echo ")"
} > go.mod
install -m 644 "$up/go.sum" go.sum
cp "$here/main.go.txt" main.go
go run -mod=mod . | gzip -9n > "$here/../services.json.gz"

#!/bin/sh
# Generates api/ and the Go binding of contiv.api (dataplane/vpp/binapi/contiv). Needs what VPP 25.10's package vpp-dev has:
# vppapigen (VPPAPIGEN, with python3-ply) and the .api and .api.json files of VPP itself (VPP_PREFIX).
set -eu

plugin=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
cd "$plugin"
prefix=${VPP_PREFIX:-/usr}
vppapigen=${VPPAPIGEN:-$prefix/bin/vppapigen}
[ -e "$vppapigen" ] || {
	echo "no $vppapigen: install vpp-dev 25.10, or name VPP's vppapigen with VPPAPIGEN and VPP's prefix with VPP_PREFIX" >&2
	exit 1
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
apigen() { /usr/bin/python3 "$vppapigen" --includedir "$prefix/include" --input "$plugin/contiv.api" --outputdir "$work" "$@"; }
apigen --output "$work/contiv.api.h"
apigen JSON --output "$work/contiv.api.json"
rm "$work"/contiv.api_test.c "$work"/contiv.api_test2.c # of vat, which we do not use
cp "$work"/contiv.api* api/

mkdir "$work/json"
cp "$work/contiv.api.json" "$work/json"
for name in interface_types ip_types memclnt; do
	find "$prefix/share/vpp/api" -name "$name.api.json" -exec cp {} "$work/json" \;
done
go tool binapi-generator --input "$work/json" --output-dir "$work/go" --import-prefix go.fd.io/govpp/binapi \
	--no-version-info --no-source-path-info contiv
cp "$work"/go/contiv/*.go ../binapi/contiv/

#!/bin/sh
# Builds the images with docker or podman. For a release pin the bases: GO_IMAGE, DEBIAN_IMAGE as name@sha256:… (README.md).
set -eu
cd "$(dirname "$0")/.."
engine=$(command -v docker || command -v podman || true)
[ -n "$engine" ] || {
	echo "no container engine: install docker or podman, or run make images, which needs none" >&2
	exit 1
}
version=$(sed -n 's/^appVersion: "\([^"]*\)".*/\1/p' k8s/contiv-vpp/Chart.yaml)
for image in agent vpp; do
	set --
	for arg in GO_IMAGE DEBIAN_IMAGE NFTABLES_VERSION IPTABLES_VERSION VPP_VERSION; do
		eval "value=\${$arg:-}"
		grep -q "^ARG $arg=" "docker/$image.Dockerfile" || continue
		[ -z "$value" ] || set -- "$@" --build-arg "$arg=$value"
	done
	"$engine" build "$@" -f "docker/$image.Dockerfile" -t "docker.io/contiv/$image:$version" .
done

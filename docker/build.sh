#!/bin/sh
# Builds the images with docker, podman or buildah: build.sh [agent|vpp|windows]... README.md describes how inputs are pinned.
# Environment: ENGINE, ENGINE_FLAGS (further flags of its build command), SOURCE_DATE_EPOCH (time of all files; default: the
# last commit's), and the arguments of the Dockerfiles.
set -eu
cd "$(dirname "$0")/.."
engine=${ENGINE:-$(command -v docker || command -v podman || command -v buildah || true)}
[ -n "$engine" ] || {
	echo "no container engine: install docker, podman or buildah, or run make images, which needs none" >&2
	exit 1
}
version=$(sed -n 's/^appVersion: "\([^"]*\)".*/\1/p' k8s/contiv-vpp/Chart.yaml)
VERSION=${VERSION:-$version}
COMMIT=${COMMIT:-$(git rev-parse --short=12 HEAD)}
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH # for docker; podman and buildah need a flag
[ $# -gt 0 ] || set -- agent vpp
for image in "$@"; do
	[ -e "docker/$image.Dockerfile" ] || {
		echo "no image $image: there are agent, vpp and windows" >&2
		exit 1
	}
	case $(basename "$engine") in
	docker) set -- ;;
	*) set -- --format oci --timestamp "$SOURCE_DATE_EPOCH" --ignorefile "docker/$image.Dockerfile.dockerignore" ;;
	esac
	for arg in VERSION COMMIT GO_IMAGE DEBIAN_IMAGE WINDOWS_IMAGE NFTABLES_VERSION IPTABLES_VERSION VPP_VERSION FDIO_REPOSITORY FDIO_KEY_SHA256; do
		eval "value=\${$arg:-}"
		grep -q "^ARG $arg=" "docker/$image.Dockerfile" || continue
		[ -z "$value" ] || set -- "$@" --build-arg "$arg=$value"
	done
	name=$image
	case $image in
	windows)
		name=agent-windows
		set -- "$@" --platform windows/amd64
		;;
	esac
	# shellcheck disable=SC2086
	"$engine" build ${ENGINE_FLAGS:-} "$@" -f "docker/$image.Dockerfile" -t "docker.io/contiv/$name:$version" .
done

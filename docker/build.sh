#!/bin/sh
# Builds the images with docker or podman.
set -eu
cd "$(dirname "$0")/.."
engine=$(command -v docker || command -v podman || true)
[ -n "$engine" ] || { echo "no container engine: install docker or podman" >&2; exit 1; }
"$engine" build -f docker/agent.Dockerfile -t contiv/agent:dev .
"$engine" build -f docker/vpp.Dockerfile -t contiv/vpp:25.10 .

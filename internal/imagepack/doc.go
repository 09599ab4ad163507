// Package imagepack packs files into a container image without a container engine: a docker-archive of one layer, which `ctr images
// import`, `docker load` and `podman load` read. The same files give the same archive, bit by bit, on any machine and at any time: names
// are sorted, times and owners are zero. hack/images uses it.
package imagepack

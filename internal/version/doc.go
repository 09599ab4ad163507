// Package version returns the version of the running program. The linker sets it (Makefile, hack/images, docker/*.Dockerfile):
//
//	go build -ldflags "-X contiv.dev/vswitch/internal/version.release=0.1.0 -X contiv.dev/vswitch/internal/version.commit=4f3a2b1c0d9e"
//
// A program whose version was not set, such as one of `go test`, has the version "devel" and the commit that the Go toolchain has
// recorded.
package version

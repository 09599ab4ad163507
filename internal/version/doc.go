// Package version is the version of the program that runs. The linker stamps it (Makefile, hack/images, docker/*.Dockerfile):
//
//	go build -ldflags "-X contiv.dev/vswitch/internal/version.release=0.1.0 -X contiv.dev/vswitch/internal/version.commit=4f3a2b1c0d9e"
//
// A program without a stamp, such as one of `go test`, says "devel" and the commit that the Go toolchain has recorded.
package version

// Package vppnode contains the protobuf message of a node's record in the cluster database.
package vppnode

//go:generate sh -c "protoc --plugin=$(go tool -n protoc-gen-go) --go_out=. --go_opt=paths=source_relative vppnode.proto"

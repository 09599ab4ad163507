#!/bin/sh
# Generates the Go code of the .proto files. Needs protoc (Debian: protobuf-compiler); the Go plugin is the tool pinned
# in go.mod.
set -eu

here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
cd "$here"

bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
# protoc starts plugins by path: this wrapper runs the pinned tool.
cat >"$bin/protoc-gen-go" <<WRAPPER
#!/bin/sh
cd "$here" && exec go tool protoc-gen-go "\$@"
WRAPPER
chmod +x "$bin/protoc-gen-go"

protoc --proto_path=. --plugin=protoc-gen-go="$bin/protoc-gen-go" \
	--go_out=. --go_opt=paths=source_relative felixbackend.proto policy.proto service.proto

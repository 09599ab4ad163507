#!/bin/sh
# Generates the Go code of the northbound model from proto/. Needs protoc; the
# Go plugin is the tool pinned in go.mod.
set -eu

nb=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
cd "$nb"

bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
# protoc starts plugins by path: this wrapper runs the pinned tool.
cat >"$bin/protoc-gen-go" <<WRAPPER
#!/bin/sh
cd "$nb" && exec go tool protoc-gen-go "\$@"
WRAPPER
chmod +x "$bin/protoc-gen-go"

find proto -name '*.proto' | sort | sed 's,^proto/,,' |
	xargs protoc --proto_path=proto \
		--plugin=protoc-gen-go="$bin/protoc-gen-go" \
		--go_out=. --go_opt=module=contiv.dev/vswitch/dataplane/nb

#!/bin/sh
# Regenerates kube.pb.go from kube.proto; needs protoc.
set -eu
cd "$(dirname "$0")"
plugin=$(mktemp)
trap 'rm -f "$plugin"' EXIT
printf '#!/bin/sh\nexec go tool protoc-gen-go "$@"\n' > "$plugin"
chmod +x "$plugin"
protoc --plugin=protoc-gen-go="$plugin" --go_out=. --go_opt=paths=source_relative kube.proto

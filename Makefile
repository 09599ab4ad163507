# Contiv: the tasks of developers and of CI, as targets. `make help` lists them.

SHELL       := /bin/bash
export PATH := $(PATH):/usr/local/go/bin
BIN         := bin
VERSION     ?= $(shell sed -n 's/^appVersion: "\([^"]*\)".*/\1/p' k8s/contiv-vpp/Chart.yaml)
COMMIT      ?= $(shell git rev-parse --short=12 HEAD 2>/dev/null)$(shell git diff --quiet HEAD 2>/dev/null || echo -dirty)
# Sets the version and the commit in internal/version. contiv-cni does not import that package (test/arch), so it has a copy in main.
STAMP       := -X contiv.dev/vswitch/internal/version.release=$(VERSION) -X contiv.dev/vswitch/internal/version.commit=$(COMMIT) -X 'main.stamp=$(VERSION) ($(COMMIT))'
GOFLAGS_STATIC := -trimpath -ldflags "-s -w $(STAMP)"
SUDO        := $(if $(filter 0,$(shell id -u)),,sudo)
# PKGS narrows test, race and bench: make test PKGS=./plugins/...
PKGS        ?= ./...

.PHONY: help
help: ## list the targets
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## /{printf "  %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## build the binaries into bin/
	@mkdir -p $(BIN)
	CGO_ENABLED=0 go build $(GOFLAGS_STATIC) -o $(BIN)/ ./cmd/... ./test/demo ./test/bench

NODES ?= 1
KEEP  ?=

.PHONY: demo
demo: deps build ## connect pods with the CNI binary, which then ping each other; NODES=3: a cluster; KEEP=1: keep it running for contiv-netctl; with VPP if it is installed
	$(SUDO) $(BIN)/demo -bin $(BIN) -nodes $(NODES) $(if $(KEEP),-keep)

# Packages whose tests run several clusters at the same time. hack/test.sh runs at most two of these packages at the same time.
CLUSTERED := ./test/cluster ./test/services ./test/e2e ./test/policy ./cmd/contiv-netctl

# Our code does not use cgo. With one setting for all targets each package is compiled only once. Tests build the commands that they run
# (test/testbed/gobuild).
GOTEST := CGO_ENABLED=0 go test -trimpath
TEST_TIMEOUT := $(if $(filter all,$(CONTIV_TEST)),3h,20m)

# The last three are modules of their own: the library for registries of hack/release, and cyclonus of the oracle, must not be dependencies of the
# product; examples use our packages like any other module.
.PHONY: test
test: deps ## run all tests in their main combinations (needs root; without VPP, tests of the real VPP are skipped with a message)
ifeq ($(PKGS),./...)
	hack/test.sh $(CLUSTERED)
else
	$(GOTEST) -p 2 -timeout $(TEST_TIMEOUT) $(PKGS)
endif
	cd hack/release && $(GOTEST) ./...
	cd test/policy/oracle && $(GOTEST) ./...
	cd examples && $(GOTEST) ./...

.PHONY: test-all
test-all: ## run all tests in all combinations of dataplane, transport, family and pod interface (more than an hour with VPP)
	CONTIV_TEST=all $(MAKE) test

CLUSTERS ?= all
SUITES   ?=
COMMA    := ,

.PHONY: e2e
e2e: deps ## run tests on a real Kubernetes, also with bridge and kube-proxy for comparison (needs root; CLUSTERS=name,…: test/kube/main_test.go; SUITES=netpol,cnp,conformance: only these upstream suites); builds Kubernetes first
	$(SUDO) test/kube/lab/build.sh
	$(if $(SUITES),$(SUDO) test/kube/lab/build.sh e2e cnp)
	$(SUDO) env PATH="$$PATH" CONTIV_KUBE=$(CLUSTERS) go test -count=1 -v $(if $(SUITES),-timeout 10h -run 'TestKube/.*/($(subst $(COMMA),|,$(SUITES)))',-timeout 60m) ./test/kube

.PHONY: race
race: deps ## run all tests with the race detector
	go test -race -timeout 30m $(PKGS)

.PHONY: bench
bench: deps build peers ## run the benchmarks; results are ratios to other implementations, measured in the same run
	$(SUDO) $(BIN)/bench -bin $(BIN)

MINUTES   ?= 30
DATAPLANE ?= auto
CONFIG    ?=
SANITIZE  ?=

.PHONY: soak
soak: deps ## run two nodes under load and faults of all kinds at the same time; MINUTES=30, DATAPLANE=vpp or linux, CONFIG="lines of contiv.conf", SANITIZE=address,undefined
	@mkdir -p $(BIN)
	CGO_ENABLED=0 go build $(GOFLAGS_STATIC) -o $(BIN)/ ./cmd/contiv-agent ./cmd/contiv-cni ./test/soak
	$(SUDO) $(BIN)/soak -bin $(BIN) -for $(MINUTES)m -dataplane $(DATAPLANE) -config '$(CONFIG)' -sanitize '$(SANITIZE)'

CONNECTIONS ?= 200000
WORKERS     ?= 0

.PHONY: hammer
hammer: deps ## replace backends under open connections while agents, and then a VPP, are killed; CONNECTIONS=200000 at 370 per second, WORKERS=0
	$(SUDO) env PATH="$$PATH" CGO_ENABLED=0 CONTIV_SERVICES_MODES=vpp-plugin CONTIV_SERVICES_HAMMER=$(CONNECTIONS) CONTIV_SERVICES_WORKERS=$(WORKERS) \
		go test -count=1 -timeout 60m -v -run TestHammer ./test/services

.PHONY: peers
peers: ## build the CNI plugins that benchmarks and tests use in addition to ours
	@mkdir -p $(BIN)/cni-plugins
	CGO_ENABLED=0 go build $(GOFLAGS_STATIC) -o $(BIN)/cni-plugins/ $$(go list tool | grep containernetworking/plugins)

.PHONY: fuzz
fuzz: ## fuzz all external input (CNI, configuration, REST, objects, etcd, netlink, CLI), FUZZTIME each (default 30s)
	hack/fuzz.sh $(or $(FUZZTIME),30s)

# Packages that are built for Windows.
WINDOWS := ./dataplane/windows/... ./cmd/contiv-agent ./cmd/contiv-cni ./cmd/contiv-init ./cmd/contiv-netctl

# Files whose functions are used, although deadcode reports them: on Windows, or by other modules (constructors).
UNSEEN := cmd/contiv-agent/host_poll.go|dataplane/(linux|windows)/aliases.go

.PHONY: lint
lint: ## gofmt, vet (for Windows, too), staticcheck, dead code and the rules of test/arch
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); echo "run gofmt -w on these files"; exit 1; }
	go vet ./...
	cd examples && go vet ./...
	for arch in amd64 arm64; do CGO_ENABLED=0 GOOS=windows GOARCH=$$arch go vet $(WINDOWS) || exit 1; done
	@faults="$$(go tool staticcheck ./... | grep -v '^dataplane/vpp/binapi/')"; test -z "$$faults" || { echo "$$faults"; exit 1; }
	@dead="$$(go tool deadcode -test ./... | grep -vE '^($(UNSEEN)):')"; test -z "$$dead" || { echo "$$dead"; echo "remove these functions"; exit 1; }
	go test ./test/arch

.PHONY: gen
gen: ## regenerate the protobuf code (needs protoc)
	dataplane/nb/gen.sh
	dataplane/proto/gen.sh
	internal/kube/model/gen.sh
	plugins/nodesync/vppnode/gen.sh
	plugins/idalloc/idallocation/gen.sh

.PHONY: vpp-plugin
vpp-plugin: ## build bin/contiv_plugin.so against the installed VPP 25.10 (gcc and VPP's headers; SANITIZE=address,undefined)
	$(MAKE) -C dataplane/vpp/plugin OUT=$(CURDIR)/$(BIN)/contiv_plugin.so

.PHONY: vpp-api
vpp-api: ## regenerate the code of the VPP plugin's API (needs vpp-dev 25.10)
	dataplane/vpp/plugin/gen.sh

.PHONY: images
images: deps ## pack the container images into bin/images, without a container engine (docker/build.sh: with one)
	go run ./hack/images -commit '$(COMMIT)'

ARCHES ?= amd64 arm64
PUSH   ?=

.PHONY: release
release: deps ## images for ARCHES and the chart as OCI artefacts in bin/release, with bills of materials and checksums; PUSH=registry/folder
	@mkdir -p $(BIN)/release
	for arch in $(ARCHES); do \
		names="agent agent-windows"; [ $$arch != "$$(go env GOARCH)" ] || names="$$names vpp"; \
		go run ./hack/images -commit '$(COMMIT)' -arch $$arch -out $(BIN)/release/images/$$arch $$names || exit 1; \
	done
	for platform in linux_amd64 linux_arm64 darwin_amd64 darwin_arm64 windows_amd64; do \
		mkdir -p $(BIN)/release/plugins/$$platform; \
		CGO_ENABLED=0 GOOS=$${platform%_*} GOARCH=$${platform#*_} go build $(GOFLAGS_STATIC) -o $(BIN)/release/plugins/$$platform/ ./cmd/kubectl-contiv || exit 1; \
	done
	$(MAKE) man MAN=$(BIN)/release/man
	go build -C hack/release -o $(CURDIR)/$(BIN)/release-tool . && $(BIN)/release-tool -images $(BIN)/release/images -out $(BIN)/release $(if $(PUSH),-push $(PUSH))

.PHONY: dockerfiles
dockerfiles: ## build docker/*.Dockerfile with buildah, twice, without a registry, and run the programs in the images (needs root)
	hack/dockerfiles.sh

.PHONY: manifests
manifests: ## generate k8s/contiv-vpp.yaml and the chart's schema from the chart
	go run ./hack/manifests

.PHONY: docs
docs: ## generate docs/configuration.md and docs/packages.md from the code and the chart
	go run ./hack/docs

.PHONY: codemetrics
codemetrics: ## print measurements of the code's structure (lengths, imports, exports); takes minutes, because it type-checks the module
	@go run ./hack/codemetrics -unused

MAN ?= $(BIN)/man

.PHONY: man
man: ## generate the manual pages of contiv-netctl in bin/man
	go test ./cmd/contiv-netctl -run '^TestManPages$$' -count=1 -args -man $(CURDIR)/$(MAN)

.PHONY: deps
deps: ## install the Debian packages and Go modules that the targets need
	@hack/deps.sh

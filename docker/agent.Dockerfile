# The agent with the CNI plugins, contiv-init, contiv-ksr and contiv-netctl. hack/images packs the same files without a
# container engine. Inputs are pinned by version; for releases docker/build.sh takes digests from the environment (README.md).
ARG GO_IMAGE=docker.io/library/golang:1.26-bookworm
ARG DEBIAN_IMAGE=docker.io/library/debian:12-slim
FROM ${GO_IMAGE} AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ENV CGO_ENABLED=0
# The version that the programs report.
ARG VERSION=devel
ARG COMMIT=
RUN go build -trimpath -buildvcs=false -ldflags "-s -w -buildid= -X contiv.dev/vswitch/internal/version.release=${VERSION} -X contiv.dev/vswitch/internal/version.commit=${COMMIT} -X 'main.stamp=${VERSION} (${COMMIT})'" -o /out/ \
    ./cmd/contiv-agent ./cmd/contiv-cni ./cmd/contiv-init ./cmd/contiv-ksr ./cmd/contiv-netctl \
    github.com/containernetworking/plugins/plugins/meta/portmap github.com/containernetworking/plugins/plugins/main/loopback

FROM ${DEBIAN_IMAGE}
# Programs that the agent runs: nft for host ports on VPP and for traces, iptables for --linux-backend=iptables. apt rejects
# any other version. The files that are deleted at the end differ from build to build.
ARG NFTABLES_VERSION=1.0.6-2+deb12u2
ARG IPTABLES_VERSION=1.8.9-2
RUN export DEBIAN_FRONTEND=noninteractive \
 && apt-get update \
 && apt-get install -y --no-install-recommends "nftables=${NFTABLES_VERSION}" "iptables=${IPTABLES_VERSION}" \
 && apt-get clean \
 && rm -rf /var/lib/apt/lists/* /var/cache/ldconfig/* /var/cache/debconf/*-old \
 && find /var/log -type f -delete
COPY --from=build /out/ /usr/local/bin/
# Root, because the agent programs the node's network. The manifests run the other programs of this image confined or as 65532.
USER 0:0
ENTRYPOINT ["/usr/local/bin/contiv-agent"]

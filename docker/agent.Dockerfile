# The agent, the CNI plugins and contiv-init. Without a container engine hack/images packs the same files.
# Pinned by version here; `docker/build.sh` takes digests from the environment (GO_IMAGE, BASE_IMAGE) for releases.
ARG GO_IMAGE=docker.io/library/golang:1.26-bookworm
ARG BASE_IMAGE=gcr.io/distroless/static-debian12:latest
FROM ${GO_IMAGE} AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ENV CGO_ENABLED=0
RUN go build -trimpath -buildvcs=false -ldflags '-s -w -buildid=' -o /out/ \
    ./cmd/contiv-agent ./cmd/contiv-cni ./cmd/contiv-init \
    github.com/containernetworking/plugins/plugins/meta/portmap github.com/containernetworking/plugins/plugins/main/loopback

FROM ${BASE_IMAGE}
COPY --from=build /out/ /usr/local/bin/
# Root, because the agent programs the node's network; the manifests run everything else of this image confined or as 65532.
USER 0:0
ENTRYPOINT ["/usr/local/bin/contiv-agent"]

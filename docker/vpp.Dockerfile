# VPP 25.10 as FD.io packages it, our supervisor, and a remedy for VPP's event loop (dataplane/vpp/epollshim, docs/adr/0005).
ARG GO_IMAGE=docker.io/library/golang:1.26-bookworm
ARG DEBIAN_IMAGE=docker.io/library/debian:12-slim
FROM ${GO_IMAGE} AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '-s -w -buildid=' -o /out/ ./cmd/contiv-vpp-supervisor \
 && gcc -O2 -shared -fPIC -o /out/epollshim.so dataplane/vpp/epollshim/src/epollshim.c -ldl

FROM ${DEBIAN_IMAGE}
# The exact package; apt refuses any other. See https://packagecloud.io/fdio/release.
ARG VPP_VERSION=25.10-release
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates curl gnupg \
 && curl -fsSL https://packagecloud.io/fdio/release/gpgkey | gpg --dearmor -o /usr/share/keyrings/fdio.gpg \
 && echo "deb [signed-by=/usr/share/keyrings/fdio.gpg] https://packagecloud.io/fdio/release/debian bookworm main" \
    > /etc/apt/sources.list.d/fdio.list \
 && apt-get update \
 && apt-get install -y --no-install-recommends "vpp=${VPP_VERSION}" "vpp-plugin-core=${VPP_VERSION}" "vpp-plugin-dpdk=${VPP_VERSION}" \
    "libvppinfra=${VPP_VERSION}" \
 && apt-get purge -y --auto-remove curl gnupg \
 && rm -rf /var/lib/apt/lists/*
COPY --from=build /out/contiv-vpp-supervisor /usr/local/bin/
COPY --from=build /out/epollshim.so /usr/lib/contiv/epollshim.so
# Root, because VPP takes NICs and locks memory.
USER 0:0
ENTRYPOINT ["/usr/local/bin/contiv-vpp-supervisor"]

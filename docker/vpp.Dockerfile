# VPP 25.10 from FD.io's packages, our supervisor, and workarounds for VPP's event loop and watchdog (dataplane/vpp/epollshim, watchdogshim).
ARG GO_IMAGE=docker.io/library/golang:1.26-bookworm
ARG DEBIAN_IMAGE=docker.io/library/debian:12-slim
FROM ${GO_IMAGE} AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
# The version that the program reports.
ARG VERSION=devel
ARG COMMIT=
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-s -w -buildid= -X contiv.dev/vswitch/internal/version.release=${VERSION} -X contiv.dev/vswitch/internal/version.commit=${COMMIT} -X 'main.stamp=${VERSION} (${COMMIT})'" -o /out/ ./cmd/contiv-vpp-supervisor \
 && gcc -O2 -shared -fPIC -o /out/epollshim.so dataplane/vpp/epollshim/src/epollshim.c -ldl \
 && gcc -O2 -shared -fPIC -o /out/watchdogshim.so dataplane/vpp/watchdogshim/src/watchdogshim.c -ldl
# The key with which FD.io signs its packages. A release also sets the key's checksum.
ARG FDIO_REPOSITORY=https://packagecloud.io/fdio/release
ARG FDIO_KEY_SHA256=
RUN curl -fsSL -o /out/fdio.asc "${FDIO_REPOSITORY}/gpgkey" \
 && { [ -z "${FDIO_KEY_SHA256}" ] || echo "${FDIO_KEY_SHA256}  /out/fdio.asc" | sha256sum -c -; }

# Our plugin, built against the headers of exactly this VPP: it does not load into any other version.
FROM ${GO_IMAGE} AS plugin
ARG VPP_VERSION=25.10-release
ARG FDIO_REPOSITORY=https://packagecloud.io/fdio/release
COPY --from=build /out/fdio.asc /etc/apt/keyrings/fdio.asc
RUN export DEBIAN_FRONTEND=noninteractive VPP_INSTALL_SKIP_SYSCTL=1 \
 && echo "deb [signed-by=/etc/apt/keyrings/fdio.asc] ${FDIO_REPOSITORY}/debian bookworm main" \
    >/etc/apt/sources.list.d/fdio.list \
 && apt-get update \
 && apt-get install -y --no-install-recommends gcc libc6-dev make "vpp-dev=${VPP_VERSION}" "libvppinfra-dev=${VPP_VERSION}" \
    "libvppinfra=${VPP_VERSION}"
COPY dataplane/vpp/plugin /src
RUN make -C /src OUT=/out/contiv_plugin.so VPP_PREFIX=/usr

FROM ${DEBIAN_IMAGE}
# The exact packages; apt rejects any other version.
ARG VPP_VERSION=25.10-release
ARG FDIO_REPOSITORY=https://packagecloud.io/fdio/release
COPY --from=build /out/fdio.asc /etc/apt/keyrings/fdio.asc
# Without VPP_INSTALL_SKIP_SYSCTL the package vpp sets the builder's kernel parameters, and fails where there is no sysctl.
# The files that are deleted at the end differ from build to build.
RUN export DEBIAN_FRONTEND=noninteractive VPP_INSTALL_SKIP_SYSCTL=1 \
 && apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates \
 && echo "deb [signed-by=/etc/apt/keyrings/fdio.asc] ${FDIO_REPOSITORY}/debian bookworm main" \
    >/etc/apt/sources.list.d/fdio.list \
 && apt-get update \
 && apt-get install -y --no-install-recommends "vpp=${VPP_VERSION}" "vpp-plugin-core=${VPP_VERSION}" \
    "vpp-plugin-dpdk=${VPP_VERSION}" "libvppinfra=${VPP_VERSION}" \
 && apt-get purge -y --auto-remove ca-certificates \
 && apt-get clean \
 && rm -rf /var/lib/apt/lists/* /var/cache/ldconfig/* /var/cache/debconf/*-old \
 && find /var/log -type f -delete
COPY --from=build /out/contiv-vpp-supervisor /usr/local/bin/
COPY --from=build /out/epollshim.so /out/watchdogshim.so /usr/lib/contiv/
COPY --from=plugin /out/contiv_plugin.so /usr/lib/contiv/contiv_plugin.so
RUN ln -s /usr/lib/contiv/contiv_plugin.so "$(dirname "$(dpkg -L vpp-plugin-core | grep '/acl_plugin.so$')")/"
# Root, because VPP takes NICs and locks memory.
USER 0:0
ENTRYPOINT ["/usr/local/bin/contiv-vpp-supervisor"]

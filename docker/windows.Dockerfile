# The agent, the CNI plugin, contiv-init and contiv-netctl for Windows nodes. Their containers are host processes, so the image contains
# no files of Windows. Build it on Linux: docker buildx build --platform windows/amd64 (docker/README.md).
ARG GO_IMAGE=docker.io/library/golang:1.26-bookworm
ARG WINDOWS_IMAGE=mcr.microsoft.com/oss/kubernetes/windows-host-process-containers-base-image:v1.0.0
FROM --platform=$BUILDPLATFORM ${GO_IMAGE} AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG TARGETARCH=amd64
ENV CGO_ENABLED=0 GOOS=windows GOARCH=${TARGETARCH}
# The version that the programs report.
ARG VERSION=devel
ARG COMMIT=
RUN go build -trimpath -buildvcs=false -ldflags "-s -w -buildid= -X contiv.dev/vswitch/internal/version.release=${VERSION} -X contiv.dev/vswitch/internal/version.commit=${COMMIT} -X 'main.stamp=${VERSION} (${COMMIT})'" -o /out/ \
    ./cmd/contiv-agent ./cmd/contiv-cni ./cmd/contiv-init ./cmd/contiv-netctl

FROM ${WINDOWS_IMAGE}
COPY --from=build /out/ /
ENV PATH="C:\Windows\system32;C:\Windows;C:\hpc;"
ENTRYPOINT ["C:/hpc/contiv-agent.exe"]

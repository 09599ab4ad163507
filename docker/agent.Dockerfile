# The agent and the CNI binary.
FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN make build

FROM gcr.io/distroless/static-debian12
COPY --from=build /src/bin/contiv-agent /src/bin/contiv-cni /usr/local/bin/
ENTRYPOINT ["/usr/local/bin/contiv-agent"]

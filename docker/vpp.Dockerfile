# VPP 25.10 as FD.io packages it, with a remedy for its event loop: see dataplane/vpp/epollshim and docs/adr/0005.
FROM debian:12-slim AS epollshim
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/*
COPY dataplane/vpp/epollshim/src/epollshim.c /
RUN gcc -O2 -shared -fPIC -o /epollshim.so /epollshim.c

FROM debian:12-slim
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates curl gnupg \
 && curl -fsSL https://packagecloud.io/fdio/release/gpgkey | gpg --dearmor -o /usr/share/keyrings/fdio.gpg \
 && echo "deb [signed-by=/usr/share/keyrings/fdio.gpg] https://packagecloud.io/fdio/release/debian bookworm main" \
    > /etc/apt/sources.list.d/fdio.list \
 && apt-get update \
 && apt-get install -y --no-install-recommends 'vpp=25.10*' 'vpp-plugin-core=25.10*' \
 && rm -rf /var/lib/apt/lists/*
COPY --from=epollshim /epollshim.so /usr/lib/contiv/epollshim.so
ENV LD_PRELOAD=/usr/lib/contiv/epollshim.so
COPY docker/startup.conf /etc/vpp/startup.conf
ENTRYPOINT ["/usr/bin/vpp", "-c", "/etc/vpp/startup.conf"]

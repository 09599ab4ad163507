# VPP 25.10 as FD.io packages it.
FROM debian:12-slim
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates curl gnupg \
 && curl -fsSL https://packagecloud.io/fdio/release/gpgkey | gpg --dearmor -o /usr/share/keyrings/fdio.gpg \
 && echo "deb [signed-by=/usr/share/keyrings/fdio.gpg] https://packagecloud.io/fdio/release/debian bookworm main" \
    > /etc/apt/sources.list.d/fdio.list \
 && apt-get update \
 && apt-get install -y --no-install-recommends 'vpp=25.10*' 'vpp-plugin-core=25.10*' \
 && rm -rf /var/lib/apt/lists/*
COPY docker/startup.conf /etc/vpp/startup.conf
ENTRYPOINT ["/usr/bin/vpp", "-c", "/etc/vpp/startup.conf"]

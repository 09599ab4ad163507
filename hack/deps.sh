#!/bin/sh
# Installs the packages that build, tests and demo need on a Debian 12 machine. Prints nothing if all of them are installed.
set -eu
missing=
for pair in ip:iproute2 ping:iputils-ping iptables:iptables nft:nftables ipset:ipset dnsmasq:dnsmasq-base ethtool:ethtool gcc:gcc curl:curl openssl:openssl conntrack:conntrack nsenter:util-linux git:git; do
	command -v "${pair%%:*}" >/dev/null 2>&1 || missing="$missing ${pair##*:}"
done
[ -e /usr/include/stdio.h ] || missing="$missing libc6-dev"
if [ -n "$missing" ]; then
	echo "installing:$missing"
	sudo=
	[ "$(id -u)" = 0 ] || sudo=sudo
	$sudo apt-get update -qq
	# shellcheck disable=SC2086
	DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq $missing >/dev/null
fi
command -v go >/dev/null 2>&1 || {
	echo "Go 1.26 is needed: install it from https://go.dev/dl/ into /usr/local/go" >&2
	exit 1
}
go mod download

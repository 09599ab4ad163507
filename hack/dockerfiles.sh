#!/bin/bash
# Builds docker/*.Dockerfile without a registry, twice, and runs the programs in the images: dockerfiles.sh [agent|vpp]...
# Needs root, buildah, mmdebstrap, apt-utils and gnupg. Unavailable inputs have stand-ins: the base images are made from
# Debian's archive and this machine's Go. The packages of FD.io are made from this machine's VPP, with the names, the
# dependencies and the maintainer scripts of FD.io's packages (src/pkg/debian in VPP's source).
# If WORK is set, the directory is kept: the next run uses its base images and Go caches.
set -eu -o pipefail
cd "$(dirname "$0")/.."
for tool in buildah mmdebstrap apt-ftparchive gpg go; do
	command -v $tool >/dev/null || {
		echo "dockerfiles: $tool is missing: apt-get install --no-install-recommends buildah mmdebstrap apt-utils gnupg" >&2
		exit 1
	}
done
if [ -z "${WORK:-}" ]; then
	WORK=$(mktemp -d)
	trap 'rm -rf "$WORK"' EXIT
fi
mkdir -p "$WORK/cache" "$WORK/modules" "$WORK/storage"
[ $# -gt 0 ] || set -- agent vpp

# With these settings buildah needs neither a daemon nor namespaces.
printf '[storage]\ndriver = "vfs"\ngraphroot = "%s/storage"\nrunroot = "%s/run"\n' "$WORK" "$WORK" >"$WORK/storage.conf"
export CONTAINERS_STORAGE_CONF=$WORK/storage.conf BUILDAH_ISOLATION=chroot
debian=localhost/standin/debian:12 golang=localhost/standin/golang:1.26

# step prints the name of the step that begins, with the time: a step takes one to ten minutes, depending on the machine's load.
step() { echo "$(date +%T) $*" >&2; }

# base NAME PACKAGES: makes an image of Debian with these packages; the image for Go also has /usr/local/go.
base() {
	! buildah inspect --type image "$1" >/dev/null 2>&1 || return 0
	step "base image $1: packages of Debian"
	mmdebstrap --quiet --variant=minbase --include="$2" bookworm "$WORK/base.tar" \
		"deb http://deb.debian.org/debian bookworm main" "deb http://deb.debian.org/debian bookworm-updates main" \
		"deb http://deb.debian.org/debian-security bookworm-security main"
	container=$(buildah from scratch)
	buildah add --quiet "$container" "$WORK/base.tar" / >/dev/null
	if [ "$1" = "$golang" ]; then
		buildah add --quiet "$container" "$(go env GOROOT)" /usr/local/go >/dev/null
		# The certificates that this machine trusts, such as that of a proxy.
		buildah add --quiet "$container" /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ >/dev/null
		buildah config --env PATH=/usr/local/go/bin:/usr/sbin:/usr/bin:/sbin:/bin --env GOPATH=/go --env GOTOOLCHAIN=local \
			--env GOPROXY=file:///modules,https://proxy.golang.org,direct "$container"
	fi
	buildah commit --quiet --rm "$container" "$1" >/dev/null
	rm "$WORK/base.tar"
}

# package NAME DEPENDS: makes a package from the files in $WORK/NAME.
package() {
	mkdir -p "$WORK/$1/DEBIAN" "$WORK/fdio/pool"
	printf 'Package: %s\nVersion: 25.10-release\nArchitecture: amd64\nMaintainer: stand-in\nDepends: %s\nDescription: stand-in\n' \
		"$1" "$2" >"$WORK/$1/DEBIAN/control"
	dpkg-deb -Zgzip -z1 --root-owner-group --build "$WORK/$1" "$WORK/fdio/pool/$1.deb" >/dev/null
}

# libraries FILES: copies VPP's own libraries into the package libvppinfra; for Debian's libraries it adds dependencies on their packages.
libraries() {
	for file in $1; do
		real=$(realpath "$file")
		if owner=$(dpkg -S "$real" 2>/dev/null || dpkg -S "${real#/usr}" 2>/dev/null); then
			depends="$depends, ${owner%%:*}"
		else
			cp -L "$file" "$WORK/libvppinfra/usr/$lib/"
		fi
	done
}

# fdio makes the stand-in for https://packagecloud.io/fdio/release, signed with a new key.
fdio() {
	lib=lib/x86_64-linux-gnu
	depends=libc6
	vpp=$(command -v vpp) || {
		echo "dockerfiles: no VPP on this machine: the packages contain programs that only print their name"
		vpp=
	}
	rm -rf "$WORK/vpp-dev" "$WORK/libvppinfra-dev"
	mkdir -p "$WORK/vpp-dev/usr" "$WORK/libvppinfra-dev"
	if [ -n "$vpp" ]; then
		cp -r "$(dirname "$vpp")/../include" "$WORK/vpp-dev/usr/"
	fi
	rm -rf "$WORK/fdio" "$WORK/vpp" "$WORK/vpp-plugin-core" "$WORK/vpp-plugin-dpdk" "$WORK/libvppinfra"
	mkdir -p "$WORK/vpp/usr/bin" "$WORK/vpp/DEBIAN" "$WORK/libvppinfra" "$WORK/vpp-plugin-core" "$WORK/vpp-plugin-dpdk"
	if [ -n "$vpp" ]; then
		cp "$vpp" "$(dirname "$vpp")/vppctl" "$WORK/vpp/usr/bin/"
		plugins=$(dirname "$vpp")/../lib/x86_64-linux-gnu/vpp_plugins
		mkdir -p "$WORK/vpp-plugin-core/usr/$lib" "$WORK/libvppinfra/usr/$lib"
		cp -r "$plugins" "$WORK/vpp-plugin-core/usr/$lib/"
		libraries "$(ldd "$vpp" "$plugins"/*.so | awk '$2 == "=>" && $3 ~ "^/" {print $3}' | sort -u)"
	else
		printf '#!/bin/sh\necho vpp\n' >"$WORK/vpp/usr/bin/vpp"
		chmod +x "$WORK/vpp/usr/bin/vpp"
	fi
	printf '#!/bin/sh -e\ngroupadd -f -r vpp\n' >"$WORK/vpp/DEBIAN/preinst"
	# shellcheck disable=SC2016
	printf '#!/bin/sh -e\n[ -n "$VPP_INSTALL_SKIP_SYSCTL" ] || sysctl --system\n' >"$WORK/vpp/DEBIAN/postinst"
	chmod +x "$WORK/vpp/DEBIAN/preinst" "$WORK/vpp/DEBIAN/postinst"
	package libvppinfra "$(tr -d ' ' <<<"$depends" | tr , '\n' | sort -u | paste -sd, | sed 's/,/, /g')"
	package vpp "libvppinfra (= 25.10-release)"
	package libvppinfra-dev "libvppinfra (= 25.10-release)"
	package vpp-dev "libvppinfra-dev (= 25.10-release)"
	package vpp-plugin-core "vpp (= 25.10-release)"
	package vpp-plugin-dpdk "vpp (= 25.10-release)"
	repository=$WORK/fdio/debian/dists/bookworm
	mkdir -p "$repository/main/binary-amd64"
	mv "$WORK/fdio/pool" "$WORK/fdio/debian/pool"
	(cd "$WORK/fdio/debian" && apt-ftparchive packages pool >dists/bookworm/main/binary-amd64/Packages)
	(cd "$repository" && apt-ftparchive -o APT::FTPArchive::Release::Codename=bookworm release . >"$WORK/Release" &&
		mv "$WORK/Release" Release)
	mkdir -p "$WORK/gnupg"
	chmod 0700 "$WORK/gnupg"
	[ -e "$WORK/gnupg/pubring.kbx" ] || GNUPGHOME=$WORK/gnupg gpg --batch --quiet --passphrase '' --quick-generate-key stand-in
	GNUPGHOME=$WORK/gnupg gpg --batch --yes --clearsign -o "$repository/InRelease" "$repository/Release"
	GNUPGHOME=$WORK/gnupg gpg --batch --armor --export >"$WORK/fdio/gpgkey"
	GNUPGHOME=$WORK/gnupg gpgconf --kill gpg-agent
	chmod -R a+rX "$WORK/fdio"
}

# build IMAGE: builds the image and prints its digest.
build() {
	step "image $1: build (its output is in $WORK/$1.log)"
	GO_IMAGE=$golang DEBIAN_IMAGE=$debian FDIO_REPOSITORY=file:///fdio SOURCE_DATE_EPOCH=1700000000 ENGINE=buildah \
		ENGINE_FLAGS="--no-cache --volume $WORK/cache:/root/.cache/go-build --volume $WORK/modules:/go/pkg/mod --volume $modules:/modules:ro ${fdio:-}" \
		docker/build.sh "$1" >"$WORK/$1.log" 2>&1 || {
		tail -n 30 "$WORK/$1.log" >&2
		return 1
	}
	buildah inspect --type image --format '{{.FromImageID}}' "docker.io/contiv/$1:$version"
}

# inside WANT COMMAND…: runs the command in the container and a network namespace; it must succeed and print WANT.
inside() {
	want=$1
	shift
	text=$(unshare --net buildah run "$container" -- "$@" 2>&1) && status=0 || status=$?
	if [ "$status" != 0 ] || ! grep -q -e "$want" <<<"$text"; then
		printf 'dockerfiles: %s: status %s, want %s in\n%s\n' "$*" "$status" "$want" "$text" >&2
		exit 1
	fi
	echo "  ${*%%$'\n'*}: $(grep -m1 -e "$want" <<<"$text")"
}

# runVPP is a script for the container: VPP must start under its supervisor, with all required plugins.
# shellcheck disable=SC2016
runVPP='# VPP under its supervisor
set -eu
contiv-vpp-supervisor --hugepages=off --heap-mb=256 --buffers=16384 --preload=/usr/lib/contiv/epollshim.so,/usr/lib/contiv/watchdogshim.so \
	--node-name=node-1 2>/tmp/log &
tries=0
until contiv-vpp-supervisor health; do
	tries=$((tries + 1))
	[ $tries -lt 60 ] || { cat /tmp/log; exit 1; }
	sleep 1
done
vppctl show version
vppctl show plugins >/tmp/plugins
for plugin in af_packet acl contiv nat vxlan; do grep -q "${plugin}_plugin.so" /tmp/plugins || { echo "no plugin $plugin"; exit 1; }; done
kill $!
wait $!'

# check runs the programs in an image.
check() {
	step "image $1: run its programs"
	container=$(buildah from --pull-never "docker.io/contiv/$1:$version")
	case $1 in
	agent)
		for program in contiv-agent contiv-init contiv-ksr contiv-netctl; do inside Usage: $program --help; done
		inside cniVersion env CNI_COMMAND=VERSION contiv-cni
		inside "CNI portmap" portmap
		inside "CNI loopback" loopback
		inside "nftables v" nft --version
		inside "(nf_tables)" iptables --version
		inside "(legacy)" iptables-legacy --version
		;;
	vpp)
		inside "no curl" sh -c '! command -v curl gpg && echo no curl, no gpg'
		inside plugins contiv-vpp-supervisor --print --preload=/usr/lib/contiv/epollshim.so,/usr/lib/contiv/watchdogshim.so --node-name=node-1
		[ -z "${vpp:-}" ] || inside "vpp v" sh -c "$runVPP"
		;;
	esac
	buildah rm "$container" >/dev/null
}

# The commit is read once for all builds: a commit between the two builds would change the digest of the second one.
COMMIT=${COMMIT:-$(git rev-parse --short=12 HEAD)}
export COMMIT
version=$(sed -n 's/^appVersion: "\([^"]*\)".*/\1/p' k8s/contiv-vpp/Chart.yaml)
umask 022
modules=$(go env GOMODCACHE)/cache/download # Go modules of this machine are not downloaded again
mkdir -p "$modules"
base $debian ca-certificates-
base $golang ca-certificates,curl,gcc,git,libc6-dev
for image in "$@"; do
	if [ "$image" = vpp ]; then
		fdio
		fdio="--volume $WORK/fdio:/fdio:ro"
	fi
	first=$(build "$image")
	second=$(build "$image")
	echo "docker.io/contiv/$image:$version  $first"
	[ "$first" = "$second" ] || {
		echo "dockerfiles: $image: the second build is another one: $second" >&2
		exit 1
	}
	check "$image"
done

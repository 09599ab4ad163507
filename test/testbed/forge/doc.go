// Package forge sends frames as a hostile pod does, past its kernel's own protocols: with lengths that lie, headers that end nowhere,
// and virtio headers (PACKET_VNET_HDR) that ask for offloads the frame does not bear. It needs what containers have by default,
// CAP_NET_RAW, and no more.
package forge

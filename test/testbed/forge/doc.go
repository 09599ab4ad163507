// Package forge sends frames as a hostile pod does, without its kernel's own protocols: with wrong lengths, truncated headers, and
// virtio headers (PACKET_VNET_HDR) that request offloads which do not fit the frame. It needs only the capability that containers
// have by default, CAP_NET_RAW.
package forge

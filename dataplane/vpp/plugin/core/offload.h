/* Packets that stand for several segments (TCP segmentation offload), and checksums that are left to a device, independent of VPP.
 *
 * A packet is an array of pieces, in order; its headers are in the first piece. If the packet also contains a field of the virtio
 * header, the packet's value is used. Addresses, ports and checksums are in wire order. */
#ifndef CONTIV_OFFLOAD_H
#define CONTIV_OFFLOAD_H

#include <stdbool.h>
#include <stdint.h>

typedef struct
{
  uint8_t *data;
  uint32_t len;
} cv_piece_t;

#define CV_LAYERS	   3   /* nested IP headers */
#define CV_PIECES	   128 /* of a packet that is segmented */
#define CV_SEGMENTS	   128 /* of one packet: 64 kB at an MSS of 512 */
#define CV_SEGMENT_HEADERS 512 /* maximum bytes before the payload */

/* ---- checksums ---- */

/* cv_sum adds bytes as 16-bit words. at is the offset of the first byte in the sum: if it is odd, the words are swapped. */
uint64_t cv_sum (const uint8_t *data, uint32_t len, uint32_t at);
/* cv_sum_finish returns the checksum of a sum, in the form in which it is written into a header. */
uint16_t cv_sum_finish (uint64_t sum);
/* cv_complete_checksum completes a checksum that is left to a device: it adds all bytes from start on, including the field, and writes
 * the result at start + offset. It returns false if that is not in the first piece. */
bool cv_complete_checksum (const cv_piece_t *in, uint32_t n_in, uint32_t start, uint32_t offset);

/* ---- headers ---- */

typedef struct
{
  uint16_t l3, l4; /* offsets of the IP header, and of the header after it and its extension headers */
  bool ip6;
  bool udp; /* UDP with VXLAN follows */
} cv_layer_t;

typedef struct
{
  cv_layer_t layers[CV_LAYERS]; /* the last one is that of the packet, the others are of tunnels around it */
  uint8_t n_layers;
  uint8_t proto;    /* transport protocol of the packet */
  uint16_t headers; /* bytes before the payload; for other protocols than TCP: bytes before the transport header */
} cv_headers_t;

typedef enum
{
  CV_GSO_OK,	    /* several segments */
  CV_GSO_ONE,	    /* a single packet: not TCP, or not longer than a segment */
  CV_GSO_MALFORMED, /* headers truncated, lengths inconsistent, or a packet that cannot be segmented */
  CV_GSO_SIZE,	    /* segments too small, therefore too many, or longer than the MTU */
} cv_gso_t;

/* ---- received packets ---- */

/* Metadata of the kernel for a packet from a TAP: the start of struct virtio_net_hdr. */
typedef struct
{
  uint8_t flags, gso_type;
  uint16_t hdr_len, gso_size, csum_start, csum_offset;
} cv_virtio_t;

#define CV_VIRTIO_NEEDS_CSUM 1
#define CV_VIRTIO_TCP4	     1
#define CV_VIRTIO_TCP6	     4
#define CV_VIRTIO_UDP	     5 /* datagrams of one length */

/* cv_offload_take prepares a packet from a TAP for VPP. CV_GSO_OK: it has several segments, not longer than the MTU, and h describes its
 * headers. CV_GSO_ONE: it is a single packet, with all checksums. The caller must drop all others. mtu 0: no limit. */
cv_gso_t cv_offload_take (const cv_piece_t *in, uint32_t n_in, const cv_virtio_t *virtio, uint32_t mtu, cv_headers_t *h);

/* cv_uplink_take does the same for TCP packets of several segments that the kernel has received from an uplink. They may be in VXLAN:
 * the lengths of the outer headers are written, and their UDP checksum is omitted if that is allowed. */
cv_gso_t cv_uplink_take (const cv_piece_t *in, uint32_t n_in, const cv_virtio_t *virtio, cv_headers_t *h);

/* ---- sent packets ---- */

typedef struct
{
  cv_headers_t h;
  const cv_piece_t *in;
  uint32_t n_in;
  uint32_t total; /* length of the packet */
  uint32_t piece, offset; /* position of the remaining payload */
  uint32_t left;	  /* bytes of remaining payload */
  uint32_t gso_size, n_segments, next;
} cv_segmenter_t;

/* cv_segment_begin reads the headers of a packet to be segmented; in must stay valid as long as s is in use. */
cv_gso_t cv_segment_begin (cv_segmenter_t *s, const cv_piece_t *in, uint32_t n_in, uint32_t gso_size, bool ethernet);
/* cv_segment_len returns the length of the next segment, including headers; 0: there are no more segments. */
uint32_t cv_segment_len (const cv_segmenter_t *s);
/* cv_segment_next writes the next segment into pieces whose total length is that of the segment; the first has room for all headers. */
void cv_segment_next (cv_segmenter_t *s, const cv_piece_t *out, uint32_t n_out);

/* cv_segment_keep prepares a packet for a device that does segmentation: the TCP checksum becomes that of the pseudo header. It returns
 * false if the packet is in a tunnel, which no such device supports. */
bool cv_segment_keep (const cv_segmenter_t *s);
/* cv_tunnels_finish writes lengths and checksums of the tunnels around a complete packet, if any. */
void cv_tunnels_finish (const cv_segmenter_t *s);

/* ---- trains: datagrams that the kernel accepts and delivers as one UDP packet (UDP segmentation offload). Each datagram carries a
 * segment in VXLAN ---- */

/* cv_train_fits reports whether the packet can be sent as trains that are all longer than shortest bytes. */
bool cv_train_fits (const cv_segmenter_t *s, uint32_t shortest);
/* cv_train_write creates the next train: pieces that refer to the payload in place and to headers in room, which has CV_TRAIN_ROOM
 * bytes. It returns the number of pieces used, at most CV_TRAIN_PIECES; 0: there are no more trains. */
uint32_t cv_train_write (cv_segmenter_t *s, uint8_t *room, cv_piece_t *out, cv_virtio_t *virtio);

#define CV_TRAIN_ROOM	(CV_SEGMENTS * CV_SEGMENT_HEADERS)
#define CV_TRAIN_PIECES 1024 /* UIO_MAXIOV */

/* A received train, in one piece. */
typedef struct
{
  uint8_t *data;
  uint32_t len, at;
  uint32_t size; /* payload of each datagram except the last */
  cv_layer_t outer;
  bool tunnel; /* the datagrams are expected to contain VXLAN */
} cv_train_t;

/* A packet taken from a train: one datagram, or several joined. */
typedef struct
{
  cv_piece_t pieces[CV_SEGMENTS + 1]; /* the outer headers, then the rest */
  uint32_t n_pieces, len;
  uint32_t gso_size; /* 0: a single datagram */
  cv_headers_t h;    /* for several datagrams */
} cv_carriage_t;

/* cv_train_read reads the headers. It returns false if they are inconsistent with each other or with the virtio header. */
bool cv_train_read (cv_train_t *t, uint8_t *data, uint32_t len, const cv_virtio_t *virtio);
/* cv_train_next takes the next packet. It joins TCP segments in VXLAN if cv_join allows it. A single datagram has a checksum. room has
 * CV_SEGMENT_HEADERS bytes, for the headers. It returns false if there are no more packets. */
bool cv_train_next (cv_train_t *t, uint8_t *room, cv_carriage_t *out);

/* ---- joining, for a device that accepts several segments as one packet ---- */

/* A TCP packet in one piece, Ethernet without VLAN tags, that can be appended to another or to which others can be appended. */
typedef struct
{
  uint8_t *data;
  uint32_t headers, payload; /* bytes */
  uint32_t next_seq, gso_size;
  uint32_t n; /* number of packets */
  bool ip6, closed, verified;
} cv_join_t;

#define CV_JOINED 64 /* maximum number of packets */

/* cv_join_read reports whether a packet can be joined: plain data, without header fields that would be lost. */
bool cv_join_read (cv_join_t *k, uint8_t *data, uint32_t len);
/* cv_join_same reports whether both are of one connection and equal in everything that one header can describe. */
bool cv_join_same (const cv_join_t *a, const cv_join_t *b);
/* cv_join appends the payload of k to first if k is the next packet of the connection and both checksums are correct. */
bool cv_join (cv_join_t *first, cv_join_t *k);
/* cv_join_finish writes the headers of the joined packet, in the form that cv_segment_keep creates. */
void cv_join_finish (const cv_join_t *first);

#endif

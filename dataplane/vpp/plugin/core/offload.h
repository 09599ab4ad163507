/* Packets that stand for several (TCP segmentation left to a device), and checksums that were left to a device, without VPP.
 *
 * A packet is an array of pieces, in order; its headers are in the first one. Where a field of the virtio header is in the
 * packet too, the packet's is used. Addresses, ports and checksums are as on the wire. */
#ifndef CONTIV_OFFLOAD_H
#define CONTIV_OFFLOAD_H

#include <stdbool.h>
#include <stdint.h>

typedef struct
{
  uint8_t *data;
  uint32_t len;
} cv_piece_t;

#define CV_LAYERS	   3   /* IP headers in one another */
#define CV_PIECES	   128 /* of a packet that is cut into segments */
#define CV_SEGMENTS	   128 /* of one packet: 64 kB at an MSS of 512 */
#define CV_SEGMENT_HEADERS 512 /* bytes before the payload */

/* ---- checksums ---- */

/* cv_sum adds up bytes as 16-bit words. at is where the first of them lies in what is added up: if it is odd, so are the words. */
uint64_t cv_sum (const uint8_t *data, uint32_t len, uint32_t at);
/* cv_sum_finish is the checksum of a sum, as it is written into a header. */
uint16_t cv_sum_finish (uint64_t sum);
/* cv_complete_checksum does what a device does with a checksum that is left to it: it adds up everything from start, the field
 * included, and writes the result at start + offset. False: that is not in the first piece. */
bool cv_complete_checksum (const cv_piece_t *in, uint32_t n_in, uint32_t start, uint32_t offset);

/* ---- headers ---- */

typedef struct
{
  uint16_t l3, l4; /* offsets of the IP header, and of what follows it and its extension headers */
  bool ip6;
  bool udp; /* VXLAN in UDP follows */
} cv_layer_t;

typedef struct
{
  cv_layer_t layers[CV_LAYERS]; /* the last one is that of the packet, the others of tunnels around it */
  uint8_t n_layers;
  uint8_t proto;    /* of the packet's transport */
  uint16_t headers; /* bytes before its payload; of other protocols than TCP: before the transport */
} cv_headers_t;

typedef enum
{
  CV_GSO_OK,	    /* several segments */
  CV_GSO_ONE,	    /* a whole packet: it is not TCP, or not longer than a segment */
  CV_GSO_MALFORMED, /* headers cut off, lengths that disagree, or what cannot be cut into segments */
  CV_GSO_SIZE,	    /* segments too small, so too many, or longer than the MTU */
} cv_gso_t;

/* ---- what comes in ---- */

/* What the kernel says of a packet from a TAP: the start of struct virtio_net_hdr. */
typedef struct
{
  uint8_t flags, gso_type;
  uint16_t hdr_len, gso_size, csum_start, csum_offset;
} cv_virtio_t;

#define CV_VIRTIO_NEEDS_CSUM 1
#define CV_VIRTIO_TCP4	     1
#define CV_VIRTIO_TCP6	     4
#define CV_VIRTIO_UDP	     5 /* datagrams of one length */

/* cv_offload_take makes of a packet from a TAP one that VPP can carry: CV_GSO_OK is one of several segments, not longer than the MTU,
 * whose headers are in h; CV_GSO_ONE is whole, with all checksums; all others are to be dropped. mtu 0: any. */
cv_gso_t cv_offload_take (const cv_piece_t *in, uint32_t n_in, const cv_virtio_t *virtio, uint32_t mtu, cv_headers_t *h);

/* cv_uplink_take does the same for TCP packets of several segments that the kernel has from an uplink. They may be in VXLAN: whose lengths
 * are written, and whose UDP checksum is left out where it may be. */
cv_gso_t cv_uplink_take (const cv_piece_t *in, uint32_t n_in, const cv_virtio_t *virtio, cv_headers_t *h);

/* ---- what goes out ---- */

typedef struct
{
  cv_headers_t h;
  const cv_piece_t *in;
  uint32_t n_in;
  uint32_t total; /* of the packet */
  uint32_t piece, offset; /* where the payload goes on */
  uint32_t left;	  /* bytes of it */
  uint32_t gso_size, n_segments, next;
} cv_segmenter_t;

/* cv_segment_begin reads the headers of a packet that is to be cut; in must live as long as s. */
cv_gso_t cv_segment_begin (cv_segmenter_t *s, const cv_piece_t *in, uint32_t n_in, uint32_t gso_size, bool ethernet);
/* cv_segment_len is the length of the next segment, headers included; 0: that was the last one. */
uint32_t cv_segment_len (const cv_segmenter_t *s);
/* cv_segment_next writes the next segment into pieces that have its length together; the first has room for all headers. */
void cv_segment_next (cv_segmenter_t *s, const cv_piece_t *out, uint32_t n_out);

/* cv_segment_keep is for a device that cuts by itself: the TCP checksum becomes that of the pseudo
 * header. False: the packet is in a tunnel, which no such device supports. */
bool cv_segment_keep (const cv_segmenter_t *s);
/* cv_tunnels_finish writes lengths and checksums of the tunnels around a whole packet, if any. */
void cv_tunnels_finish (const cv_segmenter_t *s);

/* ---- trains: datagrams that the kernel takes and gives as one UDP packet (UDP segmentation). Each carries a segment in VXLAN ---- */

/* cv_train_fits: the packet can leave as trains, none of which is as short as shortest bytes. */
bool cv_train_fits (const cv_segmenter_t *s, uint32_t shortest);
/* cv_train_write makes the next train: pieces with the payload where it is and all headers in room, which has CV_TRAIN_ROOM bytes. It returns how
 * many of the pieces, of which there are CV_TRAIN_PIECES; 0: that was the last train. */
uint32_t cv_train_write (cv_segmenter_t *s, uint8_t *room, cv_piece_t *out, cv_virtio_t *virtio);

#define CV_TRAIN_ROOM	(CV_SEGMENTS * CV_SEGMENT_HEADERS)
#define CV_TRAIN_PIECES 1024 /* UIO_MAXIOV */

/* A train that has come, in one piece. */
typedef struct
{
  uint8_t *data;
  uint32_t len, at;
  uint32_t size; /* of the payload of each datagram but the last */
  cv_layer_t outer;
  bool tunnel; /* VXLAN is expected in it */
} cv_train_t;

/* A packet out of a train: a datagram, or several joined. */
typedef struct
{
  cv_piece_t pieces[CV_SEGMENTS + 1]; /* the headers around, then the rest */
  uint32_t n_pieces, len;
  uint32_t gso_size; /* 0: a datagram */
  cv_headers_t h;    /* if it is several */
} cv_carriage_t;

/* cv_train_read reads the headers. False: they disagree with each other or with the virtio header. */
bool cv_train_read (cv_train_t *t, uint8_t *data, uint32_t len, const cv_virtio_t *virtio);
/* cv_train_next takes the next packet out. What can be joined is: TCP in VXLAN, as cv_join says. A datagram has its checksum. room has
 * CV_SEGMENT_HEADERS bytes, for its headers. False: that was all. */
bool cv_train_next (cv_train_t *t, uint8_t *room, cv_carriage_t *out);

/* ---- joining, for a device that takes several segments as one ---- */

/* A TCP packet in one piece, Ethernet without tags, that others may be appended to, or that may be appended. */
typedef struct
{
  uint8_t *data;
  uint32_t headers, payload; /* bytes */
  uint32_t next_seq, gso_size;
  uint32_t n; /* packets */
  bool ip6, closed, verified;
} cv_join_t;

#define CV_JOINED 64 /* packets at most */

/* cv_join_read reports whether a packet can take part: plain data, with nothing in its headers that
 * would be lost. */
bool cv_join_read (cv_join_t *k, uint8_t *data, uint32_t len);
/* cv_join_same: both are of one connection and alike in all that one header can say. */
bool cv_join_same (const cv_join_t *a, const cv_join_t *b);
/* cv_join appends k's payload to first, if it is the next of the connection and both checksums are right. */
bool cv_join (cv_join_t *first, cv_join_t *k);
/* cv_join_finish writes the headers of what has been joined, as for cv_segment_keep. */
void cv_join_finish (const cv_join_t *first);

#endif

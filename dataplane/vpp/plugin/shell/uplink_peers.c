/* Tracks which neighbours accept large packets. A veth and virtio deliver large packets unchanged, and a VPP without this plugin drops
 * packets that are longer than the frames of its ring. Therefore a neighbour to which large packets are to be sent is queried each
 * second, by a frame of an Ethernet type for local use. Packets to it are segmented until it answers, and again when it no longer
 * answers. Routers and other systems never answer. */
#include <sys/random.h>
#include "uplink.h"
#include <vnet/ethernet/ethernet.h>

#define KNOWN	    (1ull << 63)
#define LASTS	    3.5 /* seconds for which an answer is valid */
#define ASK_EACH    1.0
#define ASK_AFTER   10.0 /* seconds without use after which queries end */
#define PEER_LIFE	    60.0
#define ANSWERS_MAX 256 /* per second, to all senders that are not our own peers */
#define ANSWER_EACH 0.1 /* minimum interval for a peer of ours */
#define FULL_FOR    1.0

enum
{
  ASK = 1,
  ANSWER = 2,
};

typedef struct __attribute__ ((packed))
{
  u8 dst[6], src[6];
  u16 type;
  u8 magic[6];
  u8 version, kind;
  u64 token; /* an answer repeats the token of its query, which no other machine of the network has seen */
  u8 padding[30];
} message_t;

static const u8 magic[6] = "contiv";
#define LOCAL_TYPE 0x88b5 /* IEEE 802: local experimental */
#define VERSION	   2	  /* version 1 had no token */

static u64
key_of (const u8 *mac)
{
  u64 key = 0;
  clib_memcpy (&key, mac, 6);
  return key | KNOWN;
}

/* ---- table: workers read it without a lock, and add entries under a lock ---- */

static contiv_peer_t *
find (contiv_uplink_t *u, u64 key)
{
  u32 at = (u32) (key * 0x9e3779b97f4a7c15ull >> 56) % CONTIV_PEERS;
  for (u32 i = 0; i < CONTIV_PEERS; i++, at = (at + 1) % CONTIV_PEERS)
    {
      u64 mac = __atomic_load_n (&u->peers[at].mac, __ATOMIC_ACQUIRE);
      if (mac == key || !mac)
	return mac ? &u->peers[at] : 0;
    }
  return 0;
}

/* add creates an entry in a free place, or in that of a neighbour that has not been used for a long time. */
static void
add (contiv_uplink_t *u, u64 key, f64 now)
{
  u32 at = (u32) (key * 0x9e3779b97f4a7c15ull >> 56) % CONTIV_PEERS;
  if (now < u->full_until)
    return;
  clib_spinlock_lock (&u->lock);
  bool done = find (u, key); /* another worker has added it */
  for (u32 i = 0; i < CONTIV_PEERS && !done; i++, at = (at + 1) % CONTIV_PEERS)
    {
      contiv_peer_t *p = &u->peers[at];
      if (p->mac && p->used + PEER_LIFE > now)
	continue;
      p->can_until = p->asked = p->answered = 0;
      p->token = 0;
      p->used = now;
      __atomic_store_n (&p->mac, key, __ATOMIC_RELEASE);
      done = true;
    }
  if (!done)
    u->full_until = now + FULL_FOR;
  clib_spinlock_unlock (&u->lock);
}

bool
contiv_peer_can (vlib_main_t *vm, contiv_uplink_t *u, const u8 *mac)
{
  f64 now = vlib_time_now (vm);
  u64 key = key_of (mac);
  if (mac[0] & 1)
    return false; /* a group address */
  contiv_peer_t *p = find (u, key);
  if (!p)
    {
      add (u, key, now);
      return false;
    }
  p->used = now;
  return p->can_until > now && __atomic_load_n (&p->mac, __ATOMIC_ACQUIRE) == key;
}

/* ---- frames ---- */

static void
send_message (const contiv_uplink_t *u, const u8 *to, u8 kind, u64 token)
{
  const vnet_hw_interface_t *hi = vnet_get_hw_interface (vnet_get_main (), u->hw_if_index);
  message_t m = { .type = clib_host_to_net_u16 (LOCAL_TYPE), .version = VERSION, .kind = kind, .token = token };
  cv_virtio_t none = { 0 };
  struct iovec iov[] = { { &none, sizeof (none) }, { &m, sizeof (m) } };
  struct msghdr h = { .msg_iov = iov, .msg_iovlen = ARRAY_LEN (iov) };
  clib_memcpy (m.dst, to, 6);
  clib_memcpy (m.src, hi->hw_address, 6);
  clib_memcpy (m.magic, magic, sizeof (magic));
  (void) !sendmsg (u->tx, &h, MSG_DONTWAIT | MSG_NOSIGNAL); /* a lost message is repeated by the next query */
}

/* may_answer limits the cost of a flood of queries. Such a flood does not reduce the answers to our own peers. */
static bool
may_answer (contiv_uplink_t *u, contiv_peer_t *p, f64 now)
{
  if (p && p->answered + ANSWER_EACH <= now)
    {
      p->answered = now;
      return true;
    }
  if (now - u->answers_at >= 1)
    {
      u->answers_at = now;
      u->answers = 0;
    }
  return u->answers++ < ANSWERS_MAX;
}

bool
contiv_peer_frame (vlib_main_t *vm, contiv_uplink_t *u, const u8 *frame, u32 len)
{
  const message_t *m = (const void *) frame;
  if (len < offsetof (message_t, padding) || m->type != clib_host_to_net_u16 (LOCAL_TYPE) || memcmp (m->magic, magic, sizeof (magic)))
    return false;
  f64 now = vlib_time_now (vm);
  const vnet_hw_interface_t *hi = vnet_get_hw_interface (vnet_get_main (), u->hw_if_index);
  if (m->version != VERSION || m->src[0] & 1 || memcmp (m->dst, hi->hw_address, 6))
    return true;
  contiv_peer_t *p = find (u, key_of (m->src));
  if (m->kind == ASK && may_answer (u, p, now))
    send_message (u, m->src, ANSWER, m->token);
  else if (m->kind == ANSWER && p && m->token && m->token == p->token && p->asked + LASTS > now)
    p->can_until = now + LASTS;
  return true;
}

void
contiv_peers_ask (vlib_main_t *vm)
{
  contiv_interface_t *i;
  f64 now = vlib_time_now (vm);
  vec_foreach (i, contiv_main.interfaces)
    for (u32 n = 0; i->uplink && !i->uplink->cuts && n < CONTIV_PEERS; n++)
      {
	contiv_peer_t *p = &i->uplink->peers[n];
	u64 mac = __atomic_load_n (&p->mac, __ATOMIC_ACQUIRE);
	if (!mac || p->used + ASK_AFTER < now || p->asked + ASK_EACH > now)
	  continue;
	u64 token;
	if (getrandom (&token, sizeof (token), GRND_NONBLOCK) != sizeof (token) || !token)
	  continue; /* retry in the next call */
	p->token = token;
	p->asked = now;
	send_message (i->uplink, (const u8 *) &mac, ASK, token);
      }
}

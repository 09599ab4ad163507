/* The graph nodes for unicast packets: parse, decide, and forward along the feature arc. */
#include "contiv.h"
#include "place.h"
#include <vnet/ip/ip.h>

/* Number of packets that pass through each step together, so that the data that one step prefetches is in the cache when the next step
 * needs it. */
#define BATCH 32

typedef enum
{
  NEXT_DROP,
  NEXT_LOOKUP,
  NEXT_INPUT,
  N_NEXT,
} next_t;

/* A frame in progress. */
typedef struct
{
  vlib_main_t *vm;
  vlib_node_runtime_t *node;
  cv_main_t *core;
  u32 worker, now;
  bool recalls; /* the last batch had packets that cv_recall passed, or there was no batch yet */
  u32 n_out, n_answers;
  place_t place; /* of the last packet that was passed on */
  u32 counts[CONTIV_N_ERRORS];
  u32 out[VLIB_FRAME_SIZE], answers[VLIB_FRAME_SIZE];
  u16 nexts[VLIB_FRAME_SIZE];
} frame_t;

/* A verdict in addition to those of the core: the fragment waits for its first fragment, and the table owns its buffer. */
#define VERDICT_WAITS 255

static_always_inline bool
checksum_offloaded (vlib_buffer_t *b)
{
  return PREDICT_FALSE (b->flags & VNET_BUFFER_F_OFFLOAD) &&
	 (vnet_buffer (b)->oflags & (VNET_BUFFER_OFFLOAD_F_TCP_CKSUM | VNET_BUFFER_OFFLOAD_F_UDP_CKSUM));
}

static_always_inline void
read_packet (vlib_buffer_t *b, cv_packet_t *p)
{
  p->ip = vlib_buffer_get_current (b);
  p->len = b->current_length;
  p->sw_if_index = vnet_buffer (b)->sw_if_index[VLIB_RX];
  p->l4_checksum_offloaded = checksum_offloaded (b);
  p->reassembled = p->later_fragment = false;
}

/* in_group_frame reports whether a packet came in a frame to a group address. */
static_always_inline bool
in_group_frame (vlib_buffer_t *b)
{
  return PREDICT_FALSE ((b->flags & VNET_BUFFER_F_L2_HDR_OFFSET_VALID) && cv_claims_group (b->data + vnet_buffer (b)->l2_hdr_offset));
}

/* drop_group_frame drops a unicast packet that arrived on an uplink in a frame to a group address. Broadcast packets (DHCP) are exempt.
 * Without this, each node that receives such a frame would forward a copy of the packet. */
static_always_inline void
drop_group_frame (vlib_buffer_t *b, cv_packet_t *p)
{
  if (!in_group_frame (b))
    return;
  if (contiv_main.interfaces[p->sw_if_index].role != CV_ROLE_UPLINK || (!p->tuple.ip6 && p->tuple.dst.u32[0] == ~0))
    return;
  p->verdict = CV_VERDICT_DROP;
  p->reason = CONTIV_ERROR_GROUP_FRAME;
  p->no_connection = true;
}

static void
drop_buffers (frame_t *f, frags_out_t *gone)
{
  f->counts[CONTIV_ERROR_FRAGMENT_LOST] += gone->n;
  if (gone->n)
    vlib_buffer_free (f->vm, gone->buffers, gone->n);
}

/* fragment fills in the ports of a fragment, and sends on the fragments that waited for them. Those start again at the packets' first
 * node, since the features of the interface may have changed in the meantime. */
static void
fragment (frame_t *f, cv_packet_t *p, u32 bi)
{
  frags_t *frags = contiv_main.interfaces[p->sw_if_index].frags;
  frags_out_t go, gone = { 0 };
  bool first = !p->later_fragment;
  p->sport = p->dport = p->transport = 0;
  frag_result_t r = !frags ? FRAG_REFUSED : first ? FRAG_KNOWN : frags_find (frags, p, bi, f->now, &gone);
  drop_buffers (f, &gone);
  if (r == FRAG_WAITS)
    {
      f->counts[CONTIV_ERROR_FRAGMENT_WAITS]++;
      p->verdict = VERDICT_WAITS;
      return;
    }
  if (r == FRAG_REFUSED)
    {
      p->verdict = CV_VERDICT_DROP;
      p->reason = CONTIV_ERROR_FRAGMENT_LOST;
      return;
    }
  p->reassembled = true;
  cv_parse (f->core, f->worker, p, f->now);
  if (!first || p->verdict != CV_VERDICT_PASS)
    return;
  frags_learn (frags, p, f->now, &go, &gone);
  drop_buffers (f, &gone);
  if (go.n)
    vlib_buffer_enqueue_to_single_next (f->vm, f->node, go.buffers, NEXT_INPUT, go.n);
}

static_always_inline void
send (frame_t *f, vlib_buffer_t *b, cv_packet_t *p, u32 bi)
{
  u32 next = NEXT_DROP;
  if (PREDICT_TRUE (p->verdict == CV_VERDICT_PASS))
    {
      next = next_feature (&f->place, b);
      if (PREDICT_FALSE (p->table != CV_NO_INDEX))
	vnet_buffer (b)->sw_if_index[VLIB_TX] = p->table; /* the lookup node reads the table from this field */
      f->counts[p->reason]++;
    }
  else if (p->verdict == VERDICT_WAITS)
    return;
  else
    {
      contiv_error_t error = p->reason;
      if (p->verdict == CV_VERDICT_REJECT)
	{
	  u32 answer = contiv_reject (f->vm, p, &error);
	  if (answer != ~0)
	    f->answers[f->n_answers++] = answer;
	}
      b->error = f->node->errors[error];
    }
  f->out[f->n_out] = bi;
  f->nexts[f->n_out++] = next;
}

static void
trace (frame_t *f, vlib_buffer_t *b, const cv_packet_t *p, const cv_tuple_t *before)
{
  contiv_trace_t *t = vlib_add_trace (f->vm, f->node, b, sizeof (*t));
  u32 alen = before->ip6 ? 16 : 4;
  const u8 *src = p->ip + (before->ip6 ? 8 : 12);
  *t = (contiv_trace_t){ .before = *before,
			 .after = { .proto = before->proto, .ip6 = before->ip6 },
			 .sw_if_index = p->sw_if_index,
			 .connection = p->connection,
			 .verdict = p->verdict,
			 .reason = p->reason,
			 .fragment = p->reassembled || p->verdict == VERDICT_WAITS };
  clib_memcpy (&t->after.src, src, alen);
  clib_memcpy (&t->after.dst, src + alen, alen);
  if (p->reason == CV_POLICY && p->connection == CV_NO_INDEX)
    {
      t->after = p->tuple; /* the packet itself was not changed */
      return;
    }
  if (!p->l4 || p->icmp_error || p->no_connection)
    return;
  bool icmp = p->proto == IP_PROTOCOL_ICMP || p->proto == IP_PROTOCOL_ICMP6;
  clib_memcpy (&t->after.sport, p->ip + p->l4 + (icmp ? 4 : 0), 2);
  clib_memcpy (&t->after.dport, p->ip + p->l4 + (icmp ? 4 : 2), 2);
}

/* recall finds the packets of a batch that need no further processing, by the core's fast path. Packets from group frames must not take
 * the fast path, because the key of a flow does not include the kind of frame: recall passes their length as 0. */
static_always_inline u32
recall (frame_t *f, vlib_buffer_t **b, u32 n)
{
  cv_brief_t briefs[BATCH];
  for (u32 i = 0; i < n; i++)
    briefs[i] = (cv_brief_t){ vlib_buffer_get_current (b[i]), in_group_frame (b[i]) ? 0 : b[i]->current_length, vnet_buffer (b[i])->sw_if_index[VLIB_RX],
			      checksum_offloaded (b[i]) };
  cv_recalled_t r = cv_recall (f->core, f->worker, briefs, n, f->now);
  f->counts[CV_PASSED] += count_set_bits (r.passed & ~r.translated);
  f->counts[CV_TRANSLATED] += count_set_bits (r.translated);
  return r.passed;
}

/* pass sends packets to the next features of their arcs. The position is a local copy, which the compiler keeps in registers. */
static_always_inline void
pass (frame_t *f, vlib_buffer_t **b, const u32 *from, u32 n)
{
  place_t place = f->place;
  u32 *out = f->out + f->n_out;
  u16 *nexts = f->nexts + f->n_out;
  for (u32 i = 0; i < n; i++)
    {
      out[i] = from[i];
      nexts[i] = next_feature (&place, b[i]);
    }
  f->n_out += n;
  f->place = place;
}

/* decide processes the packets of a batch that are not in passed. Packets keep their order. */
static_always_inline void
decide (frame_t *f, vlib_buffer_t **b, const u32 *from, u32 n, u32 passed)
{
  cv_packet_t packets[BATCH], *p = packets;
  bool traced = f->node->flags & VLIB_NODE_FLAG_TRACE;
  for (u32 i = 0; i < n; i++)
    {
      if (passed >> i & 1)
	continue;
      read_packet (b[i], &p[i]);
      cv_parse (f->core, f->worker, &p[i], f->now);
      if (PREDICT_FALSE (p[i].verdict == CV_VERDICT_REASSEMBLE))
	fragment (f, &p[i], from[i]);
      if (p[i].verdict == CV_VERDICT_PASS)
	drop_group_frame (b[i], &p[i]);
    }
  for (u32 i = 0; i < n; i++)
    if (!(passed >> i & 1) && p[i].verdict == CV_VERDICT_PASS && !p[i].no_connection)
      cv_prefetch (f->core, &p[i]);
  for (u32 i = 0; i < n; i++)
    {
      if (passed >> i & 1)
	{
	  pass (f, b + i, from + i, 1);
	  continue;
	}
      cv_tuple_t before;
      if (PREDICT_FALSE (traced))
	before = p[i].tuple;
      if (p[i].verdict == CV_VERDICT_PASS && !p[i].no_connection)
	cv_decide (f->core, f->worker, &p[i], f->now);
      if (PREDICT_FALSE (traced) && (b[i]->flags & VLIB_BUFFER_IS_TRACED) && p[i].verdict != VERDICT_WAITS)
	trace (f, b[i], &p[i], &before);
      send (f, b[i], &p[i], from[i]);
    }
}

static_always_inline void
batch (frame_t *f, vlib_buffer_t **b, const u32 *from, u32 n)
{
  u32 passed = f->recalls ? recall (f, b, n) : 0;
  f->recalls = passed != 0;
  if (passed != pow2_mask (n))
    {
      decide (f, b, from, n, passed);
      return;
    }
  pass (f, b, from, n);
}

static void
count (frame_t *f)
{
  for (u32 i = 0; i < CONTIV_N_ERRORS; i++)
    if (f->counts[i])
      vlib_node_increment_counter (f->vm, f->node->node_index, i, f->counts[i]);
}

static uword
contiv_input (vlib_main_t *vm, vlib_node_runtime_t *node, vlib_frame_t *frame)
{
  frame_t f;
  vlib_buffer_t *buffers[VLIB_FRAME_SIZE];
  u32 *from = vlib_frame_vector_args (frame), n = frame->n_vectors;
  f.vm = vm;
  f.node = node;
  f.core = contiv_main.core;
  f.worker = vm->thread_index;
  f.now = contiv_now (vm);
  f.n_out = f.n_answers = 0;
  place_start (&f.place);
  f.recalls = !(node->flags & VLIB_NODE_FLAG_TRACE); /* the trace must show the result of the full path */
  clib_memset_u32 (f.counts, 0, CONTIV_N_ERRORS);

  vlib_get_buffers (vm, from, buffers, n);
  for (u32 j = 0; j < clib_min (2 * BATCH, n); j++)
    vlib_prefetch_buffer_header (buffers[j], STORE);
  for (u32 i = 0; i < n; i += BATCH)
    {
      /* the start of a packet is in its buffer header, so the header is prefetched one batch earlier */
      for (u32 j = i + 2 * BATCH; j < clib_min (i + 3 * BATCH, n); j++)
	vlib_prefetch_buffer_header (buffers[j], STORE);
      for (u32 j = i + BATCH; j < clib_min (i + 2 * BATCH, n); j++)
	clib_prefetch_store (vlib_buffer_get_current (buffers[j]));
      batch (&f, buffers + i, from + i, clib_min (BATCH, n - i));
    }
  vlib_buffer_enqueue_to_next (vm, node, f.out, f.nexts, f.n_out);
  if (f.n_answers)
    {
      vlib_buffer_enqueue_to_single_next (vm, node, f.answers, NEXT_LOOKUP, f.n_answers);
      f.counts[CONTIV_ERROR_ANSWERED] += f.n_answers;
    }
  count (&f);
  cv_quiesce (f.core, f.worker);
  return n;
}

VLIB_NODE_FN (contiv_ip4_input_node) (vlib_main_t *vm, vlib_node_runtime_t *node, vlib_frame_t *frame)
{
  return contiv_input (vm, node, frame);
}

VLIB_NODE_FN (contiv_ip6_input_node) (vlib_main_t *vm, vlib_node_runtime_t *node, vlib_frame_t *frame)
{
  return contiv_input (vm, node, frame);
}

VLIB_REGISTER_NODE (contiv_ip4_input_node) = {
  .name = "contiv-ip4-input",
  .vector_size = sizeof (u32),
  .format_trace = format_contiv_trace,
  .n_errors = CONTIV_N_ERRORS,
  .error_counters = contiv_errors,
  .n_next_nodes = N_NEXT,
  .next_nodes = { [NEXT_DROP] = "error-drop", [NEXT_LOOKUP] = "ip4-lookup", [NEXT_INPUT] = "ip4-input" },
};

VLIB_REGISTER_NODE (contiv_ip6_input_node) = {
  .name = "contiv-ip6-input",
  .vector_size = sizeof (u32),
  .format_trace = format_contiv_trace,
  .n_errors = CONTIV_N_ERRORS,
  .error_counters = contiv_errors,
  .n_next_nodes = N_NEXT,
  .next_nodes = { [NEXT_DROP] = "error-drop", [NEXT_LOOKUP] = "ip6-lookup", [NEXT_INPUT] = "ip6-input" },
};

VNET_FEATURE_INIT (contiv_ip4_input, static) = { .arc_name = "ip4-unicast", .node_name = "contiv-ip4-input" };
VNET_FEATURE_INIT (contiv_ip6_input, static) = { .arc_name = "ip6-unicast", .node_name = "contiv-ip6-input" };

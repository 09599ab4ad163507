/* Internet checksums in plain C that the compiler can vectorise. */
#include <string.h>
#include "offload.h"

/* The words are added in the machine's byte order. The sum of swapped words is the swapped sum, so the result is in
 * wire order. */
static uint32_t
fold (uint64_t sum)
{
  sum = (sum & 0xffffffff) + (sum >> 32);
  sum = (sum & 0xffffffff) + (sum >> 32);
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  return (uint32_t) sum;
}

uint64_t
cv_sum (const uint8_t *data, uint32_t len, uint32_t at)
{
  uint64_t sum = 0;
  uint32_t words = len / 4, i;
  for (i = 0; i < words; i++)
    {
      uint32_t w;
      memcpy (&w, data + 4ul * i, 4);
      sum += w;
    }
  for (i *= 4; i + 2 <= len; i += 2)
    {
      uint16_t w;
      memcpy (&w, data + i, 2);
      sum += w;
    }
  if (i < len)
    {
      uint16_t w = 0;
      memcpy (&w, data + i, 1);
      sum += w;
    }
  if (at & 1)
    sum = __builtin_bswap16 ((uint16_t) fold (sum));
  return sum;
}

uint16_t
cv_sum_finish (uint64_t sum)
{
  return (uint16_t) ~fold (sum);
}

bool
cv_complete_checksum (const cv_piece_t *in, uint32_t n_in, uint32_t start, uint32_t offset)
{
  if (!n_in || start + offset + 2 > in[0].len)
    return false;
  uint64_t sum = cv_sum (in[0].data + start, in[0].len - start, 0);
  uint32_t at = in[0].len - start;
  for (uint32_t i = 1; i < n_in; i++)
    {
      sum += cv_sum (in[i].data, in[i].len, at);
      at += in[i].len;
    }
  uint16_t result = cv_sum_finish (sum);
  if (!result)
    result = 0xffff; /* zero means "no checksum" */
  memcpy (in[0].data + start + offset, &result, 2);
  return true;
}

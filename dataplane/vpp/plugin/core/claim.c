/* The claim of a neighbour message: the hardware address of an IP address. VPP accepts all claims without a check, so they are checked here. */
#include "internal.h"

enum
{
  SOLICITATION = 135,
  ADVERTISEMENT = 136,
  SOURCE_LINK = 1, /* options */
  TARGET_LINK = 2,
};

/* A frame to a group address reaches all machines of a network. A neighbour with such an address would get a copy of each packet for each of them, and routers
 * among them would send theirs on. */
bool
cv_claims_group (const uint8_t *hardware)
{
  return hardware[0] & 1;
}

bool
cv_read_claim (const uint8_t *ip, uint32_t len, cv_addr_t *claimed, const uint8_t **hardware)
{
  const uint8_t *message = ip + 40;
  *hardware = 0;
  if (len < 64 || (message[0] != SOLICITATION && message[0] != ADVERTISEMENT))
    return false;
  bool asks = message[0] == SOLICITATION;
  memcpy (claimed, asks ? ip + 8 : message + 8, 16);
  if (len >= 72 && message[24] == (asks ? SOURCE_LINK : TARGET_LINK) && message[25] == 1)
    *hardware = message + 26;
  return true;
}

/* The claim of a neighbour discovery message: the hardware address of an IP address. VPP accepts all claims without a check, so they are
 * checked here. */
#include "internal.h"

enum
{
  ROUTER_SOLICITATION = 133,
  SOLICITATION = 135,
  ADVERTISEMENT = 136,
  SOURCE_LINK = 1, /* option types */
  TARGET_LINK = 2,
};

/* A frame to a group address reaches all machines of a network. If a neighbour had such an address, each machine would get a copy of
 * each packet for that neighbour, and routers among these machines would forward their copies. */
bool
cv_claims_group (const uint8_t *hardware)
{
  return hardware[0] & 1;
}

bool
cv_read_claim (const uint8_t *ip, uint32_t len, cv_claim_t *claim)
{
  const uint8_t *message = ip + 40;
  memset (claim, 0, sizeof (*claim));
  if (len < 48)
    return false;
  uint8_t type = message[0];
  uint32_t options = type == ROUTER_SOLICITATION ? 8 : 24;
  if ((type != ROUTER_SOLICITATION && type != SOLICITATION && type != ADVERTISEMENT) || len < 40 + options)
    return false;
  bool asks = type != ADVERTISEMENT;
  memcpy (&claim->address, asks ? ip + 8 : message + 8, 16);
  const uint8_t *option = message + options;
  if (len >= 40 + options + 8 && option[0] == (asks ? SOURCE_LINK : TARGET_LINK) && option[1] == 1)
    claim->hardware = option + 2;
  bool link_local = ip[8] == 0xfe && (ip[9] & 0xc0) == 0x80;
  claim->stored = claim->hardware && !(type == ROUTER_SOLICITATION && link_local);
  return true;
}

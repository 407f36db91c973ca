// SummedTurn: the unmasked secure sum of a track phase. The journal keeps it until the round is durable,
// because the members' messages that unmask it cannot be obtained again. A plain value.
#pragma once

#include <vector>

#include "core/coverage.h"
#include "core/ids.h"
#include "protocol/messages.h"

namespace fedge::server {

struct SummedTurn {
  // `update` is the object with the sums: 64-bit integers packed over the cells. `masked_scalars` are the
  // cells' weights, `samples` is the number of updates, and the loss is theirs.
  protocol::UpdateOffer offer;
  std::vector<Range> cells;
  std::vector<ClientId> clients;  // clients whose updates are in the sum
};

}  // namespace fedge::server

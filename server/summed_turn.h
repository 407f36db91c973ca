// SummedTurn: what a turn's secretly summed updates have come to without their masks, as it is kept until the
// round is: what members have said to each other cannot be had again. Values.
#pragma once

#include <vector>

#include "core/coverage.h"
#include "core/ids.h"
#include "protocol/messages.h"

namespace fedge::server {

struct SummedTurn {
  // Its `update` is the object with the sums, 64-bit integers packed over the cells; its `masked_scalars` are
  // the weights of the cells, its `samples` the number of updates, its loss theirs.
  protocol::UpdateOffer offer;
  std::vector<Range> cells;
  std::vector<ClientId> clients;  // whose updates are in it
};

}  // namespace fedge::server

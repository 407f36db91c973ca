// Which network a client runs while it trains its part of the model.
#pragma once

namespace fedge {

enum class LocalModel {
  kWhole,   // the whole network; only the part is changed
  kSlice,   // a thinner network that consists of the part alone
  kNested,  // the thinner network, or one nested in it, drawn for every step
  kPrefix,  // the whole network with the first ranks of its adapters; the part says how many
  kBlock,   // the whole network; one block of it is changed, the same one by all clients of a round
  kSplit,   // the network's first blocks; the part says how many, and a server runs the others
};

}  // namespace fedge

// SplitTrainingSpec: how a client and a server share the training of one model (section [training.split]).
#pragma once

#include <cstddef>

#include "core/config/reader.h"

namespace fedge::learn {

// Encoding of the activations and gradients at the cut.
//   float32  as they are
//   int8     a scale for each token, its largest magnitude / 127, and a signed byte for each value, rounded
//   to
//            nearest
enum class CutEncoding { kFloat32, kInt8 };

struct SplitTrainingSpec {
  // Ranks that are trained in the two blocks next to the cut; 0: all ranks.
  std::size_t cut_ranks = 0;
  bool keeps_targets = false;  // the head and the loss run on the client ("U shape")
  CutEncoding codec = CutEncoding::kFloat32;
  bool feedback = false;  // int8: what rounding has cut off a sample is added when it is sent next
};

SplitTrainingSpec read_split_training(config::Reader& section);

}  // namespace fedge::learn

// Objective: what a client's training minimises besides the local loss. It adds its gradient to the loss's
// gradient in every step. Immutable: all clients and threads of a process share one.
#pragma once

#include <span>

namespace fedge::learn {

class Objective {
 public:
  virtual ~Objective() = default;
  // Adds its gradient at `parameters` to `gradient`. `start` holds the values that the training started from.
  // The three are the same range of the model, as long as each other; a step calls this for each trained
  // range.
  virtual void add_gradient(std::span<const float> parameters, std::span<const float> start,
                            std::span<float> gradient) const = 0;
};

}  // namespace fedge::learn

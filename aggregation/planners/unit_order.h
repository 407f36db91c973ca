// Unit order: sorts the units of each hidden layer by importance, so that the first units of a layer are the
// ones that matter most and a slice of the first units keeps them (AnycostFL; Li et al., INFOCOM 2023). A
// unit's importance is the Euclidean norm of its weights. The next layer's inputs move with the units, so the
// network computes the same function; only the order of its additions changes. Pure. Cost: one pass over the
// model; memory: a second copy of it.
#pragma once

#include <span>
#include <vector>

#include "aggregation/planners/layers.h"

namespace fedge::aggregation {

// Sorts in place, largest first; equal norms keep their order. The layers must form a chain (check_chain()).
// Returns whether anything moved.
bool sort_units(const std::vector<PlanLayer>& layers, std::span<float> model);

}  // namespace fedge::aggregation

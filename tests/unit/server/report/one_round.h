// A round's metrics with a value in every field, for tests of files and reports.
#pragma once

#include <cstdint>
#include <string>

#include "server/report/metrics.h"

namespace fedge::server {

inline RoundMetrics one_round(std::uint64_t round) {
  RoundMetrics metrics;
  metrics.round = round;
  metrics.model_hash = "00ff" + std::string(60, 'a');
  metrics.test_accuracy = 0.8125;
  metrics.test_loss = 0.5;
  metrics.per_class_accuracy = {0.75, 0.875};
  metrics.train_loss = 0.1;  // not exact as a double: must read back unchanged
  metrics.clients_selected = 12;
  metrics.clients_completed = 10;
  metrics.bytes_up = 7968400;
  metrics.bytes_down = 9562080;
  metrics.virtual_seconds = 12.5 * static_cast<double>(round);
  metrics.wall_seconds = 0.25 * static_cast<double>(round);
  metrics.participation = {.gini = 0.25, .jain = 0.5, .gap = 2};
  metrics.between_class_variance = 0.0625;
  metrics.within_class_variance = 1.5;
  metrics.labels = {.covered = 4, .divergence = 0.125, .variance = 9, .accuracy = 0.875};
  metrics.bits_per_byte = 2.25;
  metrics.group_bits_per_byte = 2.5;
  metrics.epsilon = 1.25;
  metrics.clipping_norm = 0.375;
  metrics.parameters_left_out = 40;
  metrics.ranks = {{.rank = 4, .accuracy = 0.625, .loss = 0.75, .bits_per_byte = 2.75}};
  return metrics;
}

}  // namespace fedge::server

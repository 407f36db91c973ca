// ReportedEnergy: the energy that clients report with their accepted updates. A client that cannot measure
// its energy reports nothing.
#pragma once

#include <cstddef>
#include <optional>

namespace fedge {

struct ReportedEnergy {
  double joules = 0;
  std::size_t clients = 0;  // that report

  void add(const std::optional<double>& reported) {
    joules += reported.value_or(0);
    if (reported) ++clients;
  }
};

}  // namespace fedge

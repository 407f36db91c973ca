#include "learn/screening/confirmation.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace fedge::learn {

std::vector<ConfirmedEvent> confirm(std::vector<Detection> detections, double within, std::size_t vehicles) {
  std::ranges::sort(detections, {},
                    [](const Detection& one) { return std::tuple(one.label, one.metres, one.vehicle); });
  std::vector<ConfirmedEvent> confirmed;
  for (std::size_t first = 0; first < detections.size();) {
    std::set<std::size_t> seen;
    double sum = 0;
    std::size_t end = first;
    for (; end < detections.size() && detections[end].label == detections[first].label &&
           detections[end].metres - detections[first].metres <= within;
         ++end) {
      seen.insert(detections[end].vehicle);
      sum += detections[end].metres;
    }
    if (seen.size() >= vehicles)
      confirmed.push_back({sum / static_cast<double>(end - first), detections[first].label, seen.size()});
    first = end;
  }
  std::ranges::sort(confirmed, {},
                    [](const ConfirmedEvent& one) { return std::tuple(one.metres, one.label); });
  return confirmed;
}

}  // namespace fedge::learn

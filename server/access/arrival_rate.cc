#include "server/access/arrival_rate.h"

#include <algorithm>

namespace fedge::server {

std::optional<Duration> ArrivalRate::arrive(Time now) {
  const double passed = rules_.per_second * to_seconds(std::max(now - last_, Duration::zero()));
  last_ = std::max(now, last_);
  tokens_ = std::min(tokens_ + passed, rules_.burst);
  line_ = std::max(line_ - passed, 0.0);
  if (tokens_ >= 1) {
    tokens_ -= 1;
    return std::nullopt;
  }
  line_ += 1;
  return bounded(line_);
}

Duration ArrivalRate::spread(std::size_t clients) const {
  const double surplus = static_cast<double>(clients) - rules_.burst;
  return surplus > 0 ? bounded(surplus) : Duration::zero();
}

Duration ArrivalRate::bounded(double places) const {
  return std::clamp(seconds(std::min(places / rules_.per_second, to_seconds(rules_.longest))),
                    rules_.shortest, rules_.longest);
}

}  // namespace fedge::server

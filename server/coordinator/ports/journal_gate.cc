#include "server/coordinator/ports/journal_gate.h"

#include <utility>

#include "server/store/input_codec.h"

namespace fedge::server {

void JournalGate::record(const RunEngine::Input& input) {
  auto payload = surroundings_.payload_of(input);
  has_payload_ = payload != nullptr;
  entry_ = surroundings_.journal.add(surroundings_.now(), encode_record(input), std::move(payload));
}

void JournalGate::enter(Decision decision) {
  const bool waits = has_payload_ || (surroundings_.clients_aggregate && decision.closes_phase());
  if (!waits && waiting_.empty()) return surroundings_.carry_out(decision);
  waiting_.push_back({waits ? entry_ : 0, std::move(decision)});
  if (waits) surroundings_.journal.flush();
}

void JournalGate::became_durable(std::uint64_t entry) {
  while (!waiting_.empty() && waiting_.front().entry <= entry) {
    const Decision decision = std::move(waiting_.front().decision);
    waiting_.pop_front();
    surroundings_.carry_out(decision);
  }
}

}  // namespace fedge::server

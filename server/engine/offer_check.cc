#include "server/engine/offer_check.h"

#include <algorithm>
#include <string>
#include <utility>

#include "protocol/codecs/compression_spec.h"

namespace fedge::server {
namespace {

// Checks a masked update. Whether its coverage matches its session is checked by SecureRound.
std::optional<Error> check_masked(const RoundRules& rules, const protocol::UpdateOffer& offer) {
  if (offer.update.codec != *rules.masked)
    return invalid("the update is not masked in the way that the run requires");
  if (offer.update.coverage.end() > rules.parameters)
    return invalid("the update covers parameters that the model does not have");
  if (offer.samples.value() != 1 || offer.steps != 1)
    return invalid("a masked update must state 1 sample and 1 step");
  if (offer.joules) return invalid("a masked update must not state the energy of its training");
  return std::nullopt;
}

std::uint64_t most_steps(const RoundRules& rules, SampleCount samples) {
  const std::uint64_t batches = (samples.value() - 1) / rules.batch_size + 1;
  return rules.local_steps > 0 ? rules.local_steps : batches * rules.local_epochs;
}

}  // namespace

std::optional<Error> check_offer(const RoundRules& rules, const Asked& asked,
                                 const protocol::UpdateOffer& offer) {
  if (offer.run != rules.run) return Error{ErrorCode::kStale, "this update belongs to another run"};
  if (offer.update.layout != rules.layout)
    return invalid("the layout of the update, " + short_hex(offer.update.layout) +
                   ", differs from the layout of the model, " + short_hex(rules.layout));
  if (offer.update.chunk_size != rules.chunk_size)
    return invalid("the chunks of the update have " + std::to_string(offer.update.chunk_size) +
                   " bytes, but the run uses chunks of " + std::to_string(rules.chunk_size));
  if (rules.masked) return check_masked(rules, offer);
  if (!protocol::made_by(rules.compression, offer.update))
    return invalid("the encoding of the update does not match [compression] of the run file");
  if (offer.update.coverage != asked.coverage)
    return invalid("the update covers " + std::to_string(offer.update.coverage.count()) +
                   " parameters, but the task asked for " + std::to_string(asked.coverage.count()) +
                   (offer.update.coverage.count() == asked.coverage.count() ? " other parameters" : ""));
  if (offer.samples.value() == 0 || offer.samples > asked.said)
    return invalid(
        "the update claims " + std::to_string(offer.samples.value()) +
        " samples; by the sample count that the client reported for this run, it must be from 1 to " +
        std::to_string(asked.said.value()));
  if (offer.steps == 0 || offer.steps > most_steps(rules, offer.samples))
    return invalid("the update claims " + std::to_string(offer.steps) + " steps over " +
                   std::to_string(offer.samples.value()) + " samples; expected 1 to " +
                   std::to_string(most_steps(rules, offer.samples)));
  return std::nullopt;
}

protocol::UpdateOffer with_bounded_weight(const RoundRules& rules, SampleCount most,
                                          protocol::UpdateOffer offer) {
  if (offer.samples <= most) return offer;
  offer.samples = most;
  offer.steps = std::min(offer.steps, most_steps(rules, most));
  return offer;
}

Error not_collecting(RoundNumber offered, RoundNumber current) {
  const std::string now = "; the current round is " + std::to_string(current.value());
  return {ErrorCode::kStale, "round " + std::to_string(offered.value()) +
                                 (current < offered ? " has not started" : " is closed") +
                                 (offered == current ? "" : now)};
}

}  // namespace fedge::server

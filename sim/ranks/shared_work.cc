#include "sim/ranks/shared_work.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "aggregation/spec.h"
#include "core/check.h"
#include "ranks/ranks.pb.h"
#include "sim/checkpoint/records.h"

namespace fedge::sim {
namespace {

using namespace std::chrono_literals;
constexpr std::chrono::microseconds kPatience = 20ms;
constexpr std::size_t kLargestNote = std::size_t{1} << 26;  // bytes of one message

Error not_understood(std::size_t rank) {
  return {ErrorCode::kCorrupt, "rank " + std::to_string(rank) +
                                   " has sent a message that this rank does not understand: they run "
                                   "different versions of the program"};
}

}  // namespace

bool values_travel(const SimulationSpec& spec, const run::RunConfig& config) {
  const aggregation::AggregatorTraits& traits = config.strategy.traits;
  return !traits.linear || !traits.takes_sums || config.secure.on || config.dissemination.serverless ||
         spec.attack.kind != AttackKind::kNone;
}

void broadcast_failure(Ranks& ranks, const Error& error) {
  ranks::v1::Message message;
  put(*message.mutable_failed(), error);
  ranks.broadcast(message.SerializeAsString());
}

SharedWork::SharedWork(Ranks& ranks, bool values_travel, std::function<bool()> interrupted)
    : ranks_(ranks),
      values_travel_(values_travel),
      interrupted_(std::move(interrupted)),
      loads_(ranks.size()),
      notes_(ranks.size()) {}

Result<void> SharedWork::compare_start(const Digest& mine) {
  const std::string bytes(mine.begin(), mine.end());
  FEDGE_TRY(theirs, broadcast_of_first(bytes));
  if (theirs == bytes) return {};
  return Error{ErrorCode::kRefused, "rank " + std::to_string(ranks_.rank()) +
                                        " has another run file than rank 0, or clients with other numbers of "
                                        "samples; give all ranks the same run file and data"};
}

SharedWork::Place SharedWork::place(ClientId client, SampleCount samples, bool by_client) {
  const std::size_t rank = by_client
                               ? client.value() % ranks_.size()
                               : static_cast<std::size_t>(std::ranges::min_element(loads_) - loads_.begin());
  loads_[rank] += std::max<std::uint64_t>(samples.value(), 1);
  const Place place{jobs_++, rank == ranks_.rank()};
  if (!place.here) outcomes_.try_emplace(place.number);
  return place;
}

void SharedWork::broadcast_outcome(const Place& place, ClientId client, const TrainedUpdate& update) {
  ranks::v1::Message message;
  auto& out = *message.mutable_outcome();
  out.set_number(place.number);
  put(*out.mutable_training(), client, update);
  if (update.fault) put(*out.mutable_fault(), *update.fault);
  if (update.inspected && *update.inspected) out.set_inspected_norm(**update.inspected);
  if (update.inspected && !*update.inspected) put(*out.mutable_refused(), update.inspected->error());
  if (values_travel_ && update.values) {
    std::string& bytes = *out.mutable_values();
    bytes.resize(update.coverage.count() * sizeof(float));
    AlignedBuffer<float> values(update.coverage.count());
    const auto read = update.values->read(0, values.span());
    if (!read) return broadcast_failure(ranks_, read.error());
    std::memcpy(bytes.data(), values.data(), bytes.size());
  }
  ranks_.broadcast(message.SerializeAsString());
}

Result<std::optional<SharedWork::Outcome>> SharedWork::take_outcome(const Place& place, bool wait) {
  const auto found = outcomes_.find(place.number);
  FEDGE_CHECK(found != outcomes_.end(), "a job elsewhere that has not been asked for");
  if (!found->second) FEDGE_TRY_VOID(poll(wait ? kPatience : 0us));
  if (!found->second) return std::optional<Outcome>();
  std::optional<Outcome> outcome = std::move(found->second);
  outcomes_.erase(found);
  return outcome;
}

void SharedWork::forget(const Place& place) { outcomes_.erase(place.number); }

Result<void> SharedWork::poll(std::chrono::microseconds patience) {
  if (interrupted_()) return Error{ErrorCode::kUnavailable, "the run was interrupted"};
  FEDGE_TRY(message, ranks_.receive(patience));
  while (message) {
    FEDGE_TRY_VOID(take_in(*message));
    FEDGE_TRY(next, ranks_.receive(0us));
    message = std::move(next);
  }
  return {};
}

Result<void> SharedWork::take_in(const Ranks::Message& message) {
  ranks::v1::Message in;
  if (!in.ParseFromString(message.bytes)) return not_understood(message.from);
  if (in.has_failed())
    return error_of(in.failed()).with_prefix("rank " + std::to_string(message.from) + ": ");
  if (in.has_note()) {
    Notes& notes = notes_[message.from];
    notes.under_way += in.note().piece();
    if (in.note().more()) return {};
    std::string note = std::exchange(notes.under_way, {});
    if (first() || message.from == 0) notes.complete.push_back(std::move(note));
    return {};
  }
  if (in.has_decision()) {
    Decision decision{.model = {}, .ends = in.decision().ends()};
    if (in.decision().model_hash().size() != decision.model.size()) return not_understood(message.from);
    std::memcpy(decision.model.data(), in.decision().model_hash().data(), decision.model.size());
    const auto mine = unchecked_.find(in.decision().number());
    if (mine == unchecked_.end()) {
      decisions_[in.decision().number()] = decision;
      return {};
    }
    const Digest model = mine->second;
    unchecked_.erase(mine);
    return compare(in.decision().number(), model, decision.model);
  }
  if (!in.has_outcome()) return not_understood(message.from);
  const ranks::v1::Outcome& from = in.outcome();
  // Nobody will ask for the outcome of a job that this rank has dropped.
  if (from.number() < jobs_ && !outcomes_.contains(from.number())) return {};
  Outcome outcome{.update = training_of(from.training()), .values = {}};
  if (from.has_fault()) outcome.update.fault = error_of(from.fault());
  if (from.has_refused())
    outcome.update.inspected = Result<double>(error_of(from.refused()));
  else
    outcome.update.inspected = Result<double>(from.inspected_norm());
  outcome.values = AlignedBuffer<float>(from.values().size() / sizeof(float));
  if (!from.values().empty()) std::memcpy(outcome.values.data(), from.values().data(), from.values().size());
  outcomes_[from.number()] = std::move(outcome);
  return {};
}

Result<void> SharedWork::all_reduce(const std::vector<std::span<std::int64_t>>& numbers) {
  for (const auto span : numbers) FEDGE_TRY_VOID(ranks_.all_reduce(span));
  return {};
}

Result<void> SharedWork::compare(std::uint64_t number, const Digest& mine, const Digest& theirs) const {
  if (mine == theirs) return {};
  return Error{ErrorCode::kCorrupt,
               "rank " + std::to_string(ranks_.rank()) + " has computed another model than rank 0 in phase " +
                   std::to_string(number + 1) +
                   " of the run: they run different versions of the program, or a machine is faulty"};
}

Result<bool> SharedWork::confirm(const Digest& model, bool ends, bool may_end) {
  const std::uint64_t number = closed_++;
  if (first()) {
    ranks::v1::Message message;
    message.mutable_decision()->set_number(number);
    message.mutable_decision()->set_model_hash(model.data(), model.size());
    message.mutable_decision()->set_ends(ends);
    ranks_.broadcast(message.SerializeAsString());
    return ends;
  }
  while (may_end && !decisions_.contains(number)) FEDGE_TRY_VOID(poll(kPatience));
  const auto found = decisions_.find(number);
  if (found == decisions_.end()) {
    unchecked_[number] = model;
    return false;
  }
  const Decision decision = found->second;
  decisions_.erase(found);
  FEDGE_TRY_VOID(compare(number, model, decision.model));
  return decision.ends;
}

void SharedWork::broadcast(const std::string& bytes) {
  std::size_t first = 0;
  do {
    ranks::v1::Message message;
    message.mutable_note()->set_piece(bytes.substr(first, kLargestNote));
    first += kLargestNote;
    message.mutable_note()->set_more(first < bytes.size());
    ranks_.broadcast(message.SerializeAsString());
  } while (first < bytes.size());
}

Result<std::string> SharedWork::next_note(std::size_t rank) {
  std::deque<std::string>& notes = notes_[rank].complete;
  while (notes.empty()) FEDGE_TRY_VOID(poll(kPatience));
  std::string note = std::move(notes.front());
  notes.pop_front();
  return note;
}

Result<std::string> SharedWork::broadcast_of_first(std::string bytes) {
  if (!first()) return next_note(0);
  broadcast(bytes);
  return bytes;
}

// Notes reach all ranks: the others drop those that are for rank 0.
Result<std::vector<std::string>> SharedWork::gather(std::string bytes) {
  std::vector<std::string> all;
  if (!first()) {
    broadcast(bytes);
    return all;
  }
  all.push_back(std::move(bytes));
  for (std::size_t rank = 1; rank < ranks_.size(); ++rank) {
    FEDGE_TRY(note, next_note(rank));
    all.push_back(std::move(note));
  }
  return all;
}

Result<void> SharedWork::finish() {
  while (!unchecked_.empty()) FEDGE_TRY_VOID(poll(kPatience));
  return {};
}

}  // namespace fedge::sim

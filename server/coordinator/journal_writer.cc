#include "server/coordinator/detail/journal_writer.h"

#include <chrono>
#include <utility>

#include "protocol/session/loop.h"

namespace fedge::server {
namespace {

// Longest delay of entries that no flush() asks for.
constexpr std::chrono::seconds kGatherAtMost{1};

}  // namespace

JournalWriter::JournalWriter(boost::asio::io_context& io, RunStore& store, RunNumber run, std::uint64_t last)
    : io_(io),
      store_(store),
      run_(run),
      retry_(
          io, [this](const Event& event) { callbacks_.on_event(event); }, [this] { write(); }),
      gather_(io) {
  pending_.last = last;
}

Batch& JournalWriter::batch() {
  if (pending_.batches.empty() || pending_.batches.back().checkpoint)
    pending_.batches.push_back({.run = run_, .entries = {}, .checkpoint = {}});
  return pending_.batches.back();
}

std::uint64_t JournalWriter::add(Time time, std::string input,
                                 std::shared_ptr<protocol::StoredObject> payload) {
  if (pending_.batches.empty()) gather_.after(kGatherAtMost, protocol::weakly(this, [this] { flush(); }));
  batch().entries.push_back({++pending_.last, time, std::move(input)});
  if (payload) pending_.objects.push_back(std::move(payload));
  return pending_.last;
}

void JournalWriter::keep(Checkpoint checkpoint, std::function<void()> durable) {
  batch().checkpoint = std::move(checkpoint);
  pending_.durable.push_back(std::move(durable));
  flush();
}

void JournalWriter::flush() {
  wanted_ = true;
  if (writing_ || failed_ || (pending_.batches.empty() && pending_.durable.empty())) return;
  wanted_ = false;
  gather_.cancel();
  writing_ = std::make_shared<const Work>(
      std::exchange(pending_, Work{.objects = {}, .batches = {}, .last = pending_.last, .durable = {}}));
  write();
}

void JournalWriter::drain(std::function<void()> done) {
  pending_.durable.push_back(std::move(done));
  flush();
}

void JournalWriter::write() {
  disk_.post([self = shared_from_this(), work = writing_] {
    Result<void> outcome;
    for (const auto& object : work->objects)
      if (outcome) outcome = object->sync();
    if (outcome && !work->batches.empty()) outcome = self->store_.append(work->batches);
    protocol::post(self->io_, [self, outcome] { self->written(outcome); });
  });
}

void JournalWriter::written(const Result<void>& outcome) {
  if (failed_ || retry_.stopped(outcome)) return;
  const auto work = std::exchange(writing_, nullptr);
  if (!outcome) {
    failed_ = true;
    return callbacks_.on_failure(outcome.error());
  }
  callbacks_.on_durable(work->last);
  for (const auto& durable : work->durable) durable();
  if (wanted_) flush();
}

// Ignores errors: no client was told of the entries that are lost here.
void JournalWriter::shut_down() {
  const bool failed = std::exchange(failed_, true);
  retry_.cancel();
  gather_.cancel();
  disk_.join();
  if (failed || pending_.batches.empty()) return;
  for (const auto& object : pending_.objects)
    if (!object->sync()) return;
  (void)store_.append(pending_.batches);
}

}  // namespace fedge::server

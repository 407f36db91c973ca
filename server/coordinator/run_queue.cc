#include <chrono>
#include <utility>

#include "core/config/document.h"
#include "protocol/session/loop.h"
#include "server/access/calendar.h"
#include "server/coordinator/detail/run_queue.h"
#include "server/store/sqlite_store.h"

namespace fedge::server {
namespace {

constexpr std::chrono::seconds kQueueLook{1};

// Returns whether the documents differ only in the hash of model.base: that file may have changed while the
// run file did not.
bool differ_in_base_alone(const std::string& former, const std::string& present) {
  const auto without_hash = [](const std::string& text) {
    auto document = config::parse_toml(text, "");
    const auto model = document ? document->root.find("model") : config::Table::iterator();
    if (!document || model == document->root.end()) return text;
    if (auto* table = std::get_if<config::Table>(&model->second.data))
      for (const char* key : {"base_hash", "tensors"}) table->erase(key);
    return config::canonical_toml(document->root);
  };
  return without_hash(former) == without_hash(present);
}

}  // namespace

Result<std::shared_ptr<RunQueue>> RunQueue::open(boost::asio::io_context& io,
                                                 const std::filesystem::path& path) {
  FEDGE_TRY(store, open_sqlite_store(path));
  return std::shared_ptr<RunQueue>(new RunQueue(io, std::move(store)));
}

Result<RunRecord> RunQueue::submit(const std::string& name, const std::string& document,
                                   const BeforeInsert& before_insert) {
  FEDGE_TRY(runs, store_->open_runs());
  for (const RunRecord& run : runs) {
    if (has_ended(run.status)) continue;  // only its results remain to be written
    const std::string number = std::to_string(run.number.value());
    if (run.document != document)
      return Error{
          ErrorCode::kRefused,
          "run " + number + " (" + run.name + ") has not ended, and its " +
              (differ_in_base_alone(run.document, document) ? "model.base" : "run file") +
              " differs from the given one; continue with its own run file, or end the run: fedge run stop " +
              number};
    if (run.status == RunStatus::kPaused)
      FEDGE_TRY_VOID(store_->ask(run.number, RunStatus::kPending, "", calendar_now()));
    return store_->run(run.number);
  }
  RunRecord submitted = new_run(name, document);
  FEDGE_TRY_VOID(before_insert(submitted));
  FEDGE_TRY(number, store_->submit(submitted));
  submitted.number = number;
  return submitted;
}

void RunQueue::watch(OnRuns on_runs) {
  on_runs_ = std::move(on_runs);
  look(true);
  arm();
}

void RunQueue::look_now() { look(true); }

void RunQueue::arm() {
  timer_.after(kQueueLook, protocol::weakly(this, [this] {
                 if (stopped_) return;
                 look(false);
                 arm();
               }));
}

void RunQueue::look(bool always) {
  disk_.post([self = shared_from_this(), always] {
    const auto changes = self->store_->foreign_changes();
    if (!changes) return self->tell(changes.error());
    self->write_reasons();
    if ((*changes == self->foreign_changes_ && !always)) return;
    self->foreign_changes_ = *changes;
    self->tell_runs();
  });
}

void RunQueue::tell_runs() { tell(store_->open_runs()); }

void RunQueue::tell(const Result<std::vector<RunRecord>>& runs) {
  protocol::post(io_, [self = shared_from_this(), runs] {
    if (!self->stopped_) self->on_runs_(runs);
  });
}

void RunQueue::claim(RunNumber run, std::function<void(const Result<RunRecord>&)> claimed) {
  disk_.post([self = shared_from_this(), run, claimed = std::move(claimed)] {
    const auto mine = self->store_->claim(run, calendar_now());
    if (const auto cleared = self->reasons_.find(run); cleared != self->reasons_.end())
      cleared->second.written = false;
    self->write_reasons();
    const auto record = mine ? self->store_->run(run) : Result<RunRecord>(mine.error());
    self->tell_runs();
    protocol::post(self->io_, [self, claimed, record] {
      if (!self->stopped_) claimed(record);
    });
  });
}

void RunQueue::set_status(RunNumber run, RunStatus status, const std::string& reason) {
  disk_.post([self = shared_from_this(), run, status, reason] {
    (void)self->store_->set_status(run, status, reason, calendar_now());
    self->tell_runs();
  });
}

void RunQueue::ask(RunNumber run, RunStatus wanted, const std::string& reason) {
  disk_.post([self = shared_from_this(), run, wanted, reason] {
    (void)self->store_->ask(run, wanted, reason, calendar_now());
    self->tell_runs();
  });
}

void RunQueue::explain(RunNumber run, const std::string& reason) {
  disk_.post([self = shared_from_this(), run, reason] {
    self->reasons_[run] = {reason, false};
    self->write_reasons();
  });
}

void RunQueue::write_reasons() {
  for (auto& [run, reason] : reasons_)
    if (!reason.written) reason.written = store_->explain(run, reason.text).has_value();
  std::erase_if(reasons_,
                [](const auto& entry) { return entry.second.written && entry.second.text.empty(); });
}

void RunQueue::stop() {
  if (std::exchange(stopped_, true)) return;
  timer_.cancel();
  disk_.post([self = shared_from_this()] {
    for (auto& [run, reason] : self->reasons_) reason = {"", false};
    self->write_reasons();
  });
}

void RunQueue::shut_down() {
  stop();
  disk_.join();
}

}  // namespace fedge::server

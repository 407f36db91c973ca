// Coordinator, part 3: how it ends.
#include <utility>

#include "server/coordinator/detail/coordinator_impl.h"

namespace fedge::server {

void Coordinator::Impl::fail(const Error& error) {
  if (finished_) return;
  report(Event{Severity::kError, "coordinator.failed", {}}.with("reason", error.message));
  failure_ = error;
  close_doors("the coordinator is stopping after a failure; connect again later");
  let_go();
}

void Coordinator::Impl::stop(const std::string& reason) {
  if (finished_) return;
  report(Event{Severity::kInfo, "coordinator.stopping", {}}.with("reason", reason));
  close_doors(reason + "; connect again later");
  let_go();
}

void Coordinator::Impl::let_go() {
  callbacks_.on_stopped();
  unfinished_.reset();
  // Posted, because the directory must not be destroyed inside one of its own handlers.
  protocol::post(io_, [self = shared_from_this()] { self->leave_directory(); });
}

void Coordinator::Impl::close_doors(const std::string& reason) {
  finished_ = true;
  queue_->stop();
  retries_.clear();
  announce_timer_.cancel();
  keeper_->stop();
  for (const auto& [id, host] : hosts_) host->leave();
  seeder_.stop();
  if (listener_) listener_->stop();
  gate_.close(reason);
  say_goodbye(reason);
}

void Coordinator::Impl::say_goodbye(const std::string& reason) {
  const Duration window = gate_.window(peers_.links().size());
  for (const auto& [client, link] : peers_.links()) {
    link->send(protocol::Goodbye{ErrorCode::kUnavailable, reason, window});
    link->close(reason);
  }
}

void Coordinator::Impl::shut_down() {
  finished_ = true;
  queue_->shut_down();
  opener_.join();
  for (const auto& [id, host] : hosts_) {
    host->leave();
    host->shut_down();
  }
  keeper_->shut_down();
  if (exporter_) exporter_->stop();
  leave_directory();
}

// Call after the hosts have stopped: they watch their clients' records in the directory.
void Coordinator::Impl::leave_directory() {
  announcer_.reset();
  directory_.reset();
}

}  // namespace fedge::server

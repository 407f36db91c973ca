#include "server/coordinator/live_keeper.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "server/access/calendar.h"

namespace fedge::server {
namespace {

constexpr std::chrono::seconds kLook{1};
constexpr std::uint64_t kWriteEvery = 5;   // looks
constexpr std::uint64_t kMarkEvery = 300;  // looks after which also idle clients are written, as seen

}  // namespace

LiveKeeper::LiveKeeper(boost::asio::io_context& io, const std::filesystem::path& data_directory,
                       const Peers& peers, std::function<void(const Event&)> report)
    : peers_(peers), data_directory_(data_directory), report_(std::move(report)), timer_(io), io_(io) {}

void LiveKeeper::open() {
  auto file = FleetFile::open(data_directory_);
  auto kept = file ? (*file)->all() : Result<std::vector<ClientActivity>>(file.error());
  if (!kept) {
    report_(Event{Severity::kWarning, "fleet.unreadable", {}}.with("reason", kept.error().message));
    file = kept.error().code == ErrorCode::kCorrupt ? FleetFile::replace(data_directory_)
                                                    : Result<std::unique_ptr<FleetFile>>(kept.error());
  }
  if (kept) live_->fleet.take_up(std::move(*kept));
  if (file) file_ = std::move(*file);
}

void LiveKeeper::start(std::function<void()> each_second) {
  each_second_ = std::move(each_second);
  open();
  due_ = std::chrono::steady_clock::now();
  look();
}

void LiveKeeper::look() {
  const auto now = std::chrono::steady_clock::now();
  live_->note_lag(std::max(0.0, std::chrono::duration<double>(now - due_).count()));
  due_ = now + kLook;
  timer_.at(due_, protocol::weakly(this, [this] { look(); }));
  live_->publish_progress();
  live_->transfers->look();
  each_second_();
  for (const auto& [client, link] : peers_.links()) count(client, *link);
  ++looks_;
  if (looks_ % kWriteEvery == 0) write(looks_ % kMarkEvery == 0);
}

void LiveKeeper::count(ClientId client, const protocol::Link& link) {
  const protocol::Traffic now = link.traffic();
  const protocol::Traffic before = std::exchange(counted_[client], now);
  live_->fleet.moved(client, (now.received - before.received).value(), (now.sent - before.sent).value());
}

void LiveKeeper::connected(ClientId client, const protocol::Link& link, const protocol::Hello& hello) {
  counted_.erase(client);
  live_->fleet.connected(client, link.peer_address(), hello.software, hello.platform, calendar_now());
  live_->fleet.set_project(client, live_->project_of(client));
}

void LiveKeeper::disconnected(ClientId client, const protocol::Link& link) {
  count(client, link);
  counted_.erase(client);
  live_->fleet.disconnected(client, calendar_now());
}

void LiveKeeper::ended(RunNumber run, const WatchedTask& task) {
  live_->fleet.ended(run, task, calendar_now());
}

// One write at a time: what changes meanwhile comes with the next.
void LiveKeeper::write(bool all) {
  if (!file_ || writing_) return;
  auto changed = live_->fleet.take_changed(calendar_now(), all);
  if (changed.empty()) return;
  writing_ = true;
  // The thread ends before this object does.
  writer_.post([this, weak = weak_from_this(), changed = std::move(changed)] {
    const auto outcome = file_->put(changed);
    std::vector<ClientId> clients;
    for (const ClientActivity& activity : changed) clients.push_back(activity.client);
    protocol::post(io_, [weak, clients = std::move(clients), outcome] {
      if (const auto self = weak.lock()) self->written(clients, outcome);
    });
  });
}

void LiveKeeper::written(const std::vector<ClientId>& clients, const Result<void>& outcome) {
  writing_ = false;
  if (!outcome) live_->fleet.mark_changed(clients);
  if (std::exchange(failing_, !outcome) || outcome) return;
  report_(Event{Severity::kWarning, "fleet.write_failed", {}}.with("reason", outcome.error().message));
}

void LiveKeeper::stop() { timer_.cancel(); }

void LiveKeeper::shut_down() {
  stop();
  for (const auto& [client, link] : peers_.links()) disconnected(client, *link);
  if (file_) {
    const auto changed = live_->fleet.take_changed(calendar_now(), false);
    writer_.post([file = file_.get(), changed] { (void)file->put(changed); });
  }
  writer_.join();
}

}  // namespace fedge::server

#include "server/coordinator/live_keeper.h"

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
    : peers_(peers), report_(std::move(report)), timer_(io), io_(io) {
  auto file = FleetFile::open(data_directory);
  auto kept = file ? (*file)->all() : Result<std::vector<ClientActivity>>(file.error());
  if (!kept) {
    report_(Event{Severity::kWarning, "fleet.unreadable", {}}.with("reason", kept.error().message));
    file = kept.error().code == ErrorCode::kCorrupt ? FleetFile::replace(data_directory)
                                                    : Result<std::unique_ptr<FleetFile>>(kept.error());
  }
  if (kept) live_->fleet.take_up(std::move(*kept));
  if (file) file_ = std::move(*file);
}

void LiveKeeper::start() { look(); }

void LiveKeeper::look() {
  timer_.after(kLook, protocol::weakly(this, [this] { look(); }));
  live_->publish_progress();
  for (const auto& [client, link] : peers_.links()) count(client, *link);
  ++looks_;
  if (looks_ % kWriteEvery == 0) write(looks_ % kMarkEvery == 0);
}

void LiveKeeper::count(ClientId client, const protocol::Link& link) {
  const protocol::Traffic now = link.traffic();
  const protocol::Traffic before = std::exchange(counted_[client], now);
  live_->fleet.moved(client, (now.received - before.received).value(), (now.sent - before.sent).value());
}

void LiveKeeper::connected(ClientId client, const protocol::Link& link, const protocol::Hello& hello,
                           const std::string& project) {
  counted_.erase(client);
  live_->set_project(client, project);
  live_->fleet.connected(client, link.peer_address(), hello.software, hello.platform, calendar_now());
}

void LiveKeeper::disconnected(ClientId client, const protocol::Link& link) {
  count(client, link);
  counted_.erase(client);
  live_->fleet.disconnected(client, calendar_now());
}

void LiveKeeper::ended(RunNumber run, const WatchedTask& task) {
  live_->fleet.ended(run, task, calendar_now());
}

void LiveKeeper::write(bool all) {
  if (!file_) return;
  auto changed = live_->fleet.take_changed(calendar_now(), all);
  if (changed.empty()) return;
  // The thread ends before this object does.
  writer_.post([this, weak = weak_from_this(), changed = std::move(changed)] {
    const auto written = file_->put(changed);
    if (std::exchange(failing_, !written) || written) return;
    protocol::post(io_, [weak, reason = written.error().message] {
      const auto self = weak.lock();
      if (self) self->report_(Event{Severity::kWarning, "fleet.write_failed", {}}.with("reason", reason));
    });
  });
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
